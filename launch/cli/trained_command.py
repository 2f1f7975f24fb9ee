"""`repertory evaluate`, `record` and `export`: use a trained agent."""

import os
import statistics
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from absl import flags

from repertory import launch
from repertory.components.config.settings import SettingError, text_of
from repertory.launch.cli import command
from repertory.launch.cli import flags as flag_tables
from repertory.launch.cli.flags import flag
from repertory.launch.experiments import directories
from repertory.launch.platform import interrupts
from repertory.launch.results import wording
from repertory.launch.trained import released, videos


class _FolderParser(flags.ArgumentParser):
  """Parses a flag with an optional folder as its value."""

  def parse(self, argument: Any) -> Any:
    return {'true': True, 'false': False}.get(argument, argument)


def _define_folder(name: str, default: Any, text: str, flag_values) -> None:
  # absl requires no value for boolean flags.
  folder = flags.Flag(_FolderParser(), None, name, default, text, boolean=True)
  flags.DEFINE_flag(folder, flag_values)


_EPISODES = flag('episodes', 'Number of episodes.', 20)
_ARGUMENTS = {'takes_settings': True, 'takes_arguments': True}


@command.register(
  'evaluate',
  1,
  'DIRECTORY|--from_zoo=AGENT/ENV [--best] [--episodes=N] [--video[=FOLDER]]',
  'Runs episodes with the evaluation policy of a trained agent.',
  (
    *flag_tables.TRAINED_FLAGS,
    _EPISODES,
    (
      'video',
      _define_folder,
      False,
      'Record a video of each episode, in `videos` in the directory, or in the '
      'working directory with --from_zoo; or in another folder: '
      '--video=FOLDER.',
    ),
    flag(
      'video_format',
      f'Format of videos: {" or ".join(videos.FORMATS)}.',
      'mp4',
    ),
  ),
  **_ARGUMENTS,
)
def _evaluate(values, settings, positional) -> int:
  if values.video is False and values['video_format'].present:
    raise ValueError(
      '--video_format requires --video. Add that, or leave it out.'
    )
  (trained,) = _read_trained('evaluate', values, settings, positional)
  video = values.video
  if video is True:  # Released policies are in the source tree.
    parent = '' if values.from_zoo is not None else trained.directory
    video = os.path.join(parent, videos.FOLDER)
  returns = [
    episode.episode_return
    for episode in launch.trained.evaluation.evaluate(
      trained,
      values.episodes,
      video=video,
      video_format=values.video_format,
    )
  ]
  _print_summary(trained, f', {command.count_episodes(len(returns))}')
  print(f'mean       {statistics.fmean(returns):.6g}')
  print(f'deviation  {statistics.pstdev(returns):.6g}')
  print(f'minimum    {min(returns):.6g}')
  print(f'maximum    {max(returns):.6g}')
  if video is not False:
    print(f'videos     {video}')
  return command.DONE


@command.register(
  'record',
  2,
  'DIRECTORY OUTPUT [--best] [--episodes=N] [--explore] [--seed=N]',
  'Records episodes of a trained agent, as data for --topology=offline.',
  (
    *flag_tables.TRAINED_FLAGS,
    _EPISODES,
    flag(
      'explore',
      'Act with the behavior policy of training, with exploration.',
      False,
    ),
    flag('seed', 'Seed of environments and policy.', 0),
  ),
  **_ARGUMENTS,
)
def _record(values, settings, positional) -> int:
  trained, path = _read_trained(
    'record', values, settings, positional, 'OUTPUT'
  )
  with interrupts.exiting_on_interrupt():
    record = launch.trained.evaluation.record
  try:
    returns = record(
      trained, values.episodes, path, explore=values.explore, seed=values.seed
    )
  except OSError as error:  # OUTPUT cannot be written to.
    print(f'repertory: {wording.text(text_of(error))}', file=sys.stderr)
    return command.FAILED
  _print_summary(
    trained,
    f': {len(returns)} episodes of mean return '
    f'{statistics.fmean(returns):.6g}, written to {path}',
  )
  return command.DONE


@command.register(
  'export',
  2,
  'DIRECTORY OUTPUT [--best]',
  'Writes the evaluation policy of a trained agent as a SavedModel.',
  flag_tables.TRAINED_FLAGS,
  **_ARGUMENTS,
)
def _export(values, settings, positional) -> int:
  trained, path = _read_trained(
    'export', values, settings, positional, 'OUTPUT'
  )
  try:
    launch.TrainedPolicy(trained).export_saved_model(path)
  except OSError as error:
    raise SettingError(
      'output', f'must be writable, got {path}: {error.strerror or error}.'
    ) from error
  _print_summary(trained, f': written to {path}')
  return command.DONE


def _read_trained(
  name: str,
  values: flags.FlagValues,
  settings: Mapping[str, str],
  positional: Sequence[str],
  *others: str,
) -> tuple[Any, ...]:
  """Returns the `Trained` of a command, and its other arguments.

  The first argument, --directory or --from_zoo names the run or policy;
  `others` are names of further arguments, new folders.
  """
  if settings:
    raise ValueError(
      f'config settings come from the checkpoint in `{name}`, got '
      f'{sorted(settings)}.'
    )
  if values.from_zoo is None and values.zoo is not None:
    raise ValueError('--zoo requires --from_zoo. Add that, or leave it out.')
  if values.from_zoo is not None and values['best'].present:
    raise ValueError('--best must be left out with --from_zoo; got both.')
  given = [values.from_zoo, values.directory, *positional]
  given = [one for one in given if one is not None]
  if len(given) != 1 + len(others) or not all(given):
    raise ValueError(
      f'Arguments must be {" ".join(["DIRECTORY", *others])}, where '
      f'--directory=DIRECTORY or --from_zoo=AGENT/ENV may replace the first; '
      f'got {" ".join(given) or "none"}.'
    )
  directory, *paths = given
  if values.from_zoo is not None:
    directory = released.find_in_zoo(values.from_zoo, values.zoo)
  directories.check_trained(directory, values.best)
  for path in paths:
    directories.check_new(path, 'output')
  with interrupts.exiting_on_interrupt():  # TensorFlow is imported.
    read = launch.trained.loading.read
  with interrupts.raising_signals():
    trained = read(
      directory,
      values.best,
      values.trust,
      agent=values.agent,
      environment=values.env,
    )
  return (trained, *paths)


def _print_summary(trained: Any, result: str) -> None:
  summary = (
    f'{trained.agent} on {trained.environment}, learner step '
    f'{trained.counts["learner_steps"]}{result}'
  )
  print(wording.text(summary))
