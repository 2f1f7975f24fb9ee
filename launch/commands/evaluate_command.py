"""`repertory evaluate`: episodes with a trained agent."""

import statistics

from absl import flags

from repertory import launch
from repertory.launch.commands import command, making
from repertory.launch.commands import flags as flag_tables

_FLAGS = (
  *flag_tables.TRAINED_FLAGS,
  ('episodes', flags.DEFINE_integer, 20, 'How many to run.'),
)


def _evaluate(values, settings, positional) -> int:
  command.expect_no_arguments(positional)
  trained = making.read_trained(values, settings, 'evaluate')
  returns = [
    episode.episode_return
    for episode in launch.running.run_episodes(trained, values.episodes)
  ]
  experiment = trained.experiment
  print(
    f'{experiment.agent} on {experiment.environment}, learner step '
    f'{trained.learner_steps}, {len(returns)} episodes'
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
