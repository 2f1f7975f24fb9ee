"""Films of the episodes of an evaluation; needs no TensorFlow."""

import dataclasses
import os
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any

import dm_env
import numpy as np

from repertory.components import environment_loop, settings, videos
from repertory.environments import pictures
from repertory.launch import experiment as experiment_lib

# Where films go in the directory of an experiment, if no other place is named.
FOLDER = 'videos'

_FIRST = int(dm_env.StepType.FIRST)
_NAME = re.compile(r'episode_\d+_return_.+\.(?:mp4|gif)')


def prepare(video: str | bool, video_format: str, directory: str) -> str:
  """Finds out whether films can be written, as far as that can be seen before.

  Args:
    video: The folder, or True for that in the directory.
    video_format: One of `videos.FORMATS`.
    directory: The experiment's.

  Returns:
    The folder. It may not be there yet.

  Raises:
    SettingError: If not, saying what to change.
  """
  videos.check(video_format)
  if video == '':
    raise settings.SettingError('video', 'must name a folder, got nothing.')
  folder = os.path.join(directory, FOLDER) if video is True else str(video)
  try:
    films = sorted(filter(_NAME.fullmatch, os.listdir(folder)))
  except FileNotFoundError:
    return folder
  except OSError as error:
    raise settings.SettingError(
      'video', f'must be a folder to write films to, got {folder}: {error}.'
    ) from error
  if films:
    raise settings.SettingError(
      'video',
      f'must be a folder without films of another evaluation; in {folder} '
      f'there are {len(films)}, such as {films[0]}. Move or remove them, or '
      'name another folder.',
    )
  return folder


def with_pictures(
  experiment: experiment_lib.Experiment,
) -> experiment_lib.Experiment:
  """Returns the same experiment, whose environments have a picture."""
  name = 'environment_factory'
  if experiment.evaluation_environment_factory is not None:
    name = f'evaluation_{name}'
  factory = pictures.film(getattr(experiment, name))
  return dataclasses.replace(experiment, **{name: factory})


class Film:
  """An environment batch whose episodes are filmed, each to a file of its own.

  Filmed are those episodes of each slot that an evaluation is made of, see
  `EnvironmentLoop.run_episodes`. A film is `episode_003_return_21.0.mp4`, with
  its place in the order in which episodes end, from 1. It has a picture of each
  timestep, or as many as the environment gives. Until it is whole, it is in a
  hidden folder beside.
  """

  def __init__(
    self,
    environments: Any,
    folder: str,
    num_episodes: int,
    video_format: str = 'mp4',
  ):
    """Writes nothing yet.

    Args:
      environments: An environment batch, see `environments.batch`. It is not
        closed here.
      folder: Where films go; made if there is none.
      num_episodes: How many are filmed.
      video_format: One of `videos.FORMATS`.
    """
    self._environments = environments
    self._folder = folder
    self._num_episodes = num_episodes
    self._format = video_format
    self._rate = pictures.rate(environments)
    self._num_done = 0
    # Of each slot, how many episodes are still to be filmed.
    self._left = environment_loop.divide_episodes(
      num_episodes, environments.batch_size
    )
    self._unfinished: str | None = None  # The hidden folder.
    self._files: dict[int, videos.VideoFile] = {}  # By slot.

  @property
  def batch_size(self) -> int:
    """The number of slots, B."""
    return self._environments.batch_size

  def reset(self) -> dm_env.TimeStep:
    """Starts a new episode in every slot; open ones are not kept.

    Raises:
      NoPictureError: If the environments have no picture.
      VideoError: If films cannot be written.
    """
    timestep = self._environments.reset()
    self._discard()
    self._shoot([slot for slot, left in enumerate(self._left) if left])
    return timestep

  def step(self, actions: Any) -> dm_env.TimeStep:
    """Steps every slot, and takes its picture.

    Raises:
      NoPictureError: If there is none any more.
      VideoError: If films cannot be written.
    """
    timestep = self._environments.step(actions)
    first = timestep.step_type == _FIRST
    self._shoot(
      [
        slot
        for slot in range(self.batch_size)
        if slot in self._files or (self._left[slot] and first[slot])
      ]
    )
    return timestep

  def info(self, slot: int) -> Mapping[str, Any] | None:
    """Returns the info of a slot: see `VectorBatch.info`."""
    return self._environments.info(slot)

  def keep(self, episode: environment_loop.Episode) -> None:
    """Completes the film of an episode that has ended with the last step.

    Raises:
      VideoError: If it cannot be written.
    """
    slot = episode.slot
    if slot not in self._files:  # One more than is wanted of it.
      return
    self._left[slot] -= 1
    self._num_done += 1
    digits = max(3, len(str(self._num_episodes)))
    name = (
      f'episode_{self._num_done:0{digits}}_return_'
      f'{_write(episode.episode_return)}.{self._format}'
    )
    self._try(self._files[slot].save_as, os.path.join(self._folder, name))
    del self._files[slot]

  def close(self) -> None:
    """Removes what is not whole."""
    self._discard()
    if self._unfinished is not None:
      shutil.rmtree(self._unfinished, ignore_errors=True)
      self._unfinished = None

  def _shoot(self, slots: Sequence[int]) -> None:
    """Adds what is seen of these slots to their films, and begins new ones."""
    if not slots:
      return
    try:
      taken = pictures.take(self._environments, slots)
    except pictures.NoPictureError as error:
      raise pictures.NoPictureError(
        f'The environment cannot be filmed: {str(error).rstrip(".")}. Which '
        'ones have a picture, and how one gets it: docs/videos.md.'
      ) from error
    for slot, frames in zip(slots, taken, strict=True):
      if slot not in self._files:
        self._files[slot] = self._begin(slot, frames)
      for frame in frames:
        self._try(self._files[slot].add, frame)

  def _begin(self, slot: int, frames: np.ndarray) -> videos.VideoFile:
    if self._unfinished is None:
      try:
        os.makedirs(self._folder, exist_ok=True)
        self._unfinished = tempfile.mkdtemp(
          prefix='.unfinished_', dir=self._folder
        )
      except OSError as error:
        raise settings.SettingError(
          'video', f'must be a folder to write films to: {error}.'
        ) from error
    path = os.path.join(self._unfinished, f'slot_{slot}')
    _, height, width, _ = frames.shape
    return videos.VideoFile(path, height, width, self._rate, self._format)

  def _try(self, write, *arguments) -> None:
    try:
      write(*arguments)
    except videos.VideoError as error:
      raise videos.VideoError(
        f'Films in {self._folder} cannot be written: {error}.'
      ) from error

  def _discard(self) -> None:
    while self._files:
      self._files.popitem()[1].discard()


def _write(episode_return: float) -> str:
  """Returns '21.0', '0.955' or '-123.457' for a file's name."""
  text = f'{episode_return:.6g}'
  return text if re.search('[.a-z]', text) else f'{text}.0'
