"""`repertory evaluate`, `record` and `export`: use a trained agent."""

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
from repertory.launch.trained import videos


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
  'DIRECTORY [--best] [--episodes=N] [--video[=FOLDER]]',
  'Runs episodes with the evaluation policy of a trained agent.',
  (
    *flag_tables.TRAINED_FLAGS,
    _EPISODES,
    (
      'video',
      _define_folder,
      False,
      'Record a video of each episode, in `videos` in the directory, or in '
      'another folder: --video=FOLDER.',
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
  _take_directory(values, positional)
  if values.video is False and values['video_format'].present:
    raise ValueError(
      '--video_format requires --video. Add that, or leave it out.'
    )
  folder = None
  if values.video is not False:
    folder = videos.prepare(values.video, values.video_format, values.directory)
  trained = _read_trained(values, settings, 'evaluate')
  returns = [
    episode.episode_return
    for episode in launch.trained.evaluation.evaluate(
      trained,
      values.episodes,
      video=values.video,
      video_format=values.video_format,
    )
  ]
  _print_summary(trained, f', {command.count_episodes(len(returns))}')
  print(f'mean       {statistics.fmean(returns):.6g}')
  print(f'deviation  {statistics.pstdev(returns):.6g}')
  print(f'minimum    {min(returns):.6g}')
  print(f'maximum    {max(returns):.6g}')
  if folder is not None:
    print(f'videos     {folder}')
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
  path = _take_output(values, positional)
  trained = _read_trained(values, settings, 'record')
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
  path = _take_output(values, positional)
  trained = _read_trained(values, settings, 'export')
  try:
    launch.TrainedPolicy(trained).export_saved_model(path)
  except OSError as error:
    raise SettingError(
      'output', f'must be writable, got {path}: {error.strerror or error}.'
    ) from error
  _print_summary(trained, f': written to {path}')
  return command.DONE


def _read_trained(
  values: flags.FlagValues, settings: Mapping[str, str], command: str
) -> Any:
  """Returns the `Trained` of a command's flags, see `flags.TRAINED_FLAGS`."""
  if settings:
    raise ValueError(
      f'config settings come from the checkpoint in `{command}`, got '
      f'{sorted(settings)}.'
    )
  with interrupts.exiting_on_interrupt():  # TensorFlow is imported.
    read = launch.trained.loading.read
  with interrupts.raising_signals():
    return read(
      values.directory,
      values.best,
      values.trust,
      agent=values.agent,
      environment=values.env,
    )


def _take_directory(
  values: flags.FlagValues, positional: Sequence[str], *others: str
) -> list[str]:
  """Sets --directory to the first argument, and checks that it has a run.

  Returns the other arguments, whose names are `others`.
  """
  given = list(positional)
  if values.directory is not None:
    given.insert(0, values.directory)
  if len(given) != 1 + len(others) or not all(given):
    raise ValueError(
      f'Arguments must be {" ".join(["DIRECTORY", *others])}, where DIRECTORY, '
      'or --directory instead, is that of a run; got '
      f'{" ".join(given) or "none"}.'
    )
  directory, *rest = given
  directories.check_trained(directory, values.best)
  values.directory = directory
  return rest


def _take_output(values: flags.FlagValues, positional: Sequence[str]) -> str:
  """Returns the argument OUTPUT, a new folder."""
  (path,) = _take_directory(values, positional, 'OUTPUT')
  directories.check_new(path, 'output')
  return path


def _print_summary(trained: Any, result: str) -> None:
  summary = (
    f'{trained.agent} on {trained.environment}, learner step '
    f'{trained.counts["learner_steps"]}{result}'
  )
  print(wording.text(summary))
