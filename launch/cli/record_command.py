"""`repertory record`: records episodes of a trained policy as offline data."""

import statistics
import sys

from absl import flags

from repertory import launch
from repertory.components.config.settings import text_of
from repertory.launch.cli import command, factory
from repertory.launch.cli import flags as flag_tables
from repertory.launch.opening import directories
from repertory.launch.platform import interrupts
from repertory.launch.results import wording

_FLAGS = (
  *flag_tables.TRAINED_FLAGS,
  ('episodes', flags.DEFINE_integer, 20, 'Number of episodes.'),
  (
    'explore',
    flags.DEFINE_bool,
    False,
    'Act with the behavior policy of training, with exploration.',
  ),
  (
    'seed',
    flags.DEFINE_integer,
    0,
    'Seed of environments and policy.',
  ),
)


def _record(values, settings, positional) -> int:
  (path,) = factory.take_directory(values, positional, 'OUTPUT')
  directories.check_new(path, 'output')
  trained = factory.read_trained(values, settings, 'record')
  with interrupts.exiting_on_interrupt():
    record_episodes = launch.trained.recording.record_episodes
  try:
    returns = record_episodes(
      trained, values.episodes, path, explore=values.explore, seed=values.seed
    )
  except OSError as error:  # OUTPUT cannot be written to.
    print(f'repertory: {wording.text(text_of(error))}', file=sys.stderr)
    return command.FAILED
  experiment = trained.experiment
  summary = (
    f'{experiment.agent} on {experiment.environment}, learner step '
    f'{trained.learner_steps}: {len(returns)} episodes of mean return '
    f'{statistics.fmean(returns):.6g}, written to {path}'
  )
  print(wording.text(summary))
  return command.DONE


command.REGISTRY.register(
  'record',
  command.Command(
    'DIRECTORY OUTPUT [--best] [--episodes=N] [--explore] [--seed=N]',
    'Records episodes of a trained agent, as data for --topology=offline.',
    _FLAGS,
    _record,
  ),
  rank=2,
)
