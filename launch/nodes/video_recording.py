"""Video recording of evaluation episodes; needs no TensorFlow."""

import os
import re
import uuid
from collections.abc import Sequence
from typing import Any

import dm_env
import numpy as np

from repertory.components.actors import environment_loop
from repertory.components.config import settings
from repertory.environments.batches import vector_batch
from repertory.environments.rendering import rendering
from repertory.launch.nodes import videos

# Default folder of videos, in the experiment's directory.
FOLDER = 'videos'

_FIRST = int(dm_env.StepType.FIRST)
_NAME = re.compile(r'episode_\d+_return_.+\.(?:mp4|gif)')


def prepare(video: str | bool, video_format: str, directory: str) -> str:
  """Checks the video settings, and returns the folder, which may not exist.

  `video` is the folder, or True for the default in the experiment's directory.
  Raises SettingError if the format is unknown or the folder is not usable.
  """
  videos.check(video_format)
  if video == '':
    raise settings.SettingError('video', 'must name a folder, got nothing.')
  folder = os.path.join(directory, FOLDER) if video is True else str(video)
  try:
    found = sorted(filter(_NAME.fullmatch, os.listdir(folder)))
  except FileNotFoundError:
    return folder
  except OSError as error:
    raise settings.SettingError(
      'video', f'must be a folder for videos, got {folder}: {error}.'
    ) from error
  if found:
    raise settings.SettingError(
      'video',
      f'must be a folder without videos of another evaluation; {folder} '
      f'has {len(found)}, such as {found[0]}. Move or remove them, or '
      'name another folder.',
    )
  return folder


class VideoRecorder(vector_batch.BatchWrapper):
  """Environment batch that records a video of each evaluation episode.

  Records the episodes of each slot that count for the evaluation, see
  `EnvironmentLoop.run_episodes`. Files are named `episode_003_return_21.0.mp4`,
  numbered from 1 in the order in which episodes end. A video has one frame per
  timestep, or as many as the environment renders. Unfinished videos are hidden
  files of the folder.
  """

  def __init__(
    self,
    environments: Any,
    folder: str,
    num_episodes: int,
    video_format: str = 'mp4',
  ):
    """Writes nothing yet; the caller closes the environments."""
    super().__init__(environments)
    self._folder = folder
    self._num_episodes = num_episodes
    self._format = video_format
    self._rate = rendering.rate(environments)
    self._num_done = 0
    # Episodes still to be recorded, by slot.
    self._left = environment_loop.divide_episodes(
      num_episodes, environments.batch_size
    )
    self._files: dict[int, videos.VideoFile] = {}  # By slot.

  def reset(self) -> dm_env.TimeStep:
    """Resets every slot; discards unfinished videos; raises as `step`."""
    timestep = self.batch.reset()
    self.close()
    self._record([slot for slot, left in enumerate(self._left) if left])
    return timestep

  def step(self, actions: Any) -> dm_env.TimeStep:
    """Steps every slot and records its frames.

    Raises:
      RenderError: If the environments no longer render.
      VideoError: If a video cannot be written.
    """
    timestep = self.batch.step(actions)
    first = timestep.step_type == _FIRST
    self._record(
      [
        slot
        for slot in range(self.batch_size)
        if slot in self._files or (self._left[slot] and first[slot])
      ]
    )
    return timestep

  def keep(self, episode: environment_loop.Episode) -> None:
    """Finishes the video of an episode that ended in the last step."""
    slot = episode.slot
    if slot not in self._files:  # Not part of the evaluation.
      return
    self._left[slot] -= 1
    self._num_done += 1
    digits = max(3, len(str(self._num_episodes)))
    name = (
      f'episode_{self._num_done:0{digits}}_return_'
      f'{_format_return(episode.episode_return)}.{self._format}'
    )
    self._files.pop(slot).save_as(os.path.join(self._folder, name))

  def close(self) -> None:
    """Removes unfinished videos."""
    while self._files:
      self._files.popitem()[1].discard()

  def _record(self, slots: Sequence[int]) -> None:
    """Adds frames of these slots to their videos; starts missing videos."""
    if not slots:
      return
    try:
      rendered = rendering.take(self.batch, slots)
    except rendering.RenderError as error:
      raise rendering.RenderError(
        f'The environment cannot render: {str(error).rstrip(".")}. See '
        'docs/videos.md for environments that can, and how to add it.'
      ) from error
    for slot, frames in zip(slots, rendered, strict=True):
      if slot not in self._files:
        self._files[slot] = self._begin(frames)
      for frame in frames:
        self._files[slot].add(frame)

  def _begin(self, frames: np.ndarray) -> videos.VideoFile:
    path = os.path.join(self._folder, f'.unfinished_{uuid.uuid4().hex}')
    try:
      os.makedirs(self._folder, exist_ok=True)
      open(path, 'xb').close()
    except OSError as error:
      raise settings.SettingError(
        'video', f'must be a folder for videos: {error}.'
      ) from error
    _, height, width, _ = frames.shape
    return videos.VideoFile(path, height, width, self._rate, self._format)


def _format_return(episode_return: float) -> str:
  """Formats a return for a file name, such as '21.0' or '-123.457'."""
  text = f'{episode_return:.6g}'
  return text if re.search('[.a-z]', text) else f'{text}.0'
