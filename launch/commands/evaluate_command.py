"""`repertory evaluate`: episodes with a trained agent."""

import statistics
from typing import Any

from absl import flags

from repertory import launch
from repertory.components import videos
from repertory.launch.commands import command, making
from repertory.launch.commands import flags as flag_tables
from repertory.launch.host import interrupts
from repertory.launch.records import wording


class _FolderParser(flags.ArgumentParser):
  """Reads a flag that may have a folder as its value, or be given without."""

  def parse(self, argument: Any) -> Any:
    return {'true': True, 'false': False}.get(argument, argument)


def _define_folder(name: str, default: Any, text: str, flag_values) -> None:
  # A flag that is boolean to absl needs no value.
  flag = flags.Flag(_FolderParser(), None, name, default, text, boolean=True)
  flags.DEFINE_flag(flag, flag_values)


_FLAGS = (
  *flag_tables.TRAINED_FLAGS,
  ('episodes', flags.DEFINE_integer, 20, 'How many to run.'),
  (
    'video',
    _define_folder,
    False,
    'Film the episodes, a file each: to `videos` in the directory, or to a '
    'folder of your own as --video=FOLDER.',
  ),
  (
    'video_format',
    flags.DEFINE_string,
    'mp4',
    f'Of films: {" or ".join(videos.FORMATS)}.',
  ),
)


def _evaluate(values, settings, positional) -> int:
  making.take_directory(values, positional)
  if values.video is False and values['video_format'].present:
    raise ValueError(
      '--video_format is of films: ask for them with --video, or leave it out.'
    )
  folder = None
  if values.video is not False:
    with interrupts.leaving_at_once():  # TensorFlow is imported.
      prepare = launch.filming.prepare
    folder = prepare(values.video, values.video_format, values.directory)
  trained = making.read_trained(values, settings, 'evaluate')
  returns = [
    episode.episode_return
    for episode in launch.evaluation.run_episodes(
      trained,
      values.episodes,
      video=values.video,
      video_format=values.video_format,
    )
  ]
  experiment = trained.experiment
  summary = (
    f'{experiment.agent} on {experiment.environment}, learner step '
    f'{trained.learner_steps}, {command.count_episodes(len(returns))}'
  )
  print(wording.text(summary))
  print(f'mean       {statistics.fmean(returns):.6g}')
  print(f'deviation  {statistics.pstdev(returns):.6g}')
  print(f'minimum    {min(returns):.6g}')
  print(f'maximum    {max(returns):.6g}')
  if folder is not None:
    print(f'films      {folder}')
  return command.DONE


command.REGISTRY.register(
  'evaluate',
  command.Command(
    'DIRECTORY [--best] [--episodes=N] [--video[=FOLDER]]',
    'Runs episodes with the evaluation policy of a trained agent.',
    _FLAGS,
    _evaluate,
  ),
  rank=1,
)
