"""`repertory evaluate`: episodes with a trained agent."""

import statistics

from absl import flags

from repertory import launch
from repertory.launch import experiment as experiment_lib
from repertory.launch.commands import command
from repertory.launch.host import brief_notes, interrupts

_FLAGS = (
  ('directory', flags.DEFINE_string, None, 'Where the trained agent is.'),
  (
    'best',
    flags.DEFINE_bool,
    False,
    'Take the policy that did best in an evaluation of training, in place of '
    'the newest checkpoint.',
  ),
  ('episodes', flags.DEFINE_integer, 20, 'How many to run.'),
)


def _evaluate(values, settings, positional) -> int:
  command.expect_no_arguments(positional)
  command.expect_no_settings(
    settings, 'config settings come from the checkpoint in `evaluate`'
  )
  if not values.directory:
    raise ValueError('--directory must name the directory of a trained agent.')
  with (
    brief_notes.saying('importing TensorFlow'),
    interrupts.leaving_at_once(),
  ):
    running = launch.running
  checkpoint = running.load_policy(values.directory, values.best)
  experiment = experiment_lib.from_identity(
    checkpoint.state['experiment'], values.directory
  )
  returns = [
    episode.episode_return
    for episode in running.evaluate(
      experiment, values.episodes, best=values.best
    )
  ]
  print(
    f'{experiment.agent} on {experiment.environment}, learner step '
    f'{checkpoint.state["counts"]["learner_steps"]}, {len(returns)} episodes'
  )
  print(f'mean       {statistics.fmean(returns):.6g}')
  print(f'deviation  {statistics.pstdev(returns):.6g}')
  print(f'minimum    {min(returns):.6g}')
  print(f'maximum    {max(returns):.6g}')
  return command.DONE


command.REGISTRY.register(
  'evaluate',
  command.Command(
    '--directory=DIRECTORY [--best] [--episodes=N]',
    'Runs episodes with the evaluation policy of a trained agent.',
    _FLAGS,
    _evaluate,
  ),
  rank=1,
)
