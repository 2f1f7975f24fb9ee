"""`repertory evaluate`: evaluates a trained agent."""

import statistics
from typing import Any

from absl import flags

from repertory import launch
from repertory.launch.cli import command, factory
from repertory.launch.cli import flags as flag_tables
from repertory.launch.nodes import videos
from repertory.launch.platform import interrupts
from repertory.launch.results import wording


class _FolderParser(flags.ArgumentParser):
  """Parses a flag with an optional folder as its value."""

  def parse(self, argument: Any) -> Any:
    return {'true': True, 'false': False}.get(argument, argument)


def _define_folder(name: str, default: Any, text: str, flag_values) -> None:
  # absl requires no value for boolean flags.
  flag = flags.Flag(_FolderParser(), None, name, default, text, boolean=True)
  flags.DEFINE_flag(flag, flag_values)


_FLAGS = (
  *flag_tables.TRAINED_FLAGS,
  ('episodes', flags.DEFINE_integer, 20, 'Number of episodes.'),
  (
    'video',
    _define_folder,
    False,
    'Record a video of each episode, in `videos` in the directory, or in '
    'another folder: --video=FOLDER.',
  ),
  (
    'video_format',
    flags.DEFINE_string,
    'mp4',
    f'Format of videos: {" or ".join(videos.FORMATS)}.',
  ),
)


def _evaluate(values, settings, positional) -> int:
  factory.take_directory(values, positional)
  if values.video is False and values['video_format'].present:
    raise ValueError(
      '--video_format requires --video. Add that, or leave it out.'
    )
  folder = None
  if values.video is not False:
    with interrupts.exiting_on_interrupt():  # TensorFlow is imported.
      prepare = launch.nodes.video_recording.prepare
    folder = prepare(values.video, values.video_format, values.directory)
  trained = factory.read_trained(values, settings, 'evaluate')
  returns = [
    episode.episode_return
    for episode in launch.trained.evaluation.run_episodes(
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
    print(f'videos     {folder}')
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
