"""Videos of evaluation episodes; needs no TensorFlow.

Frames are encoded while rendering, by ffmpeg, from the package imageio-ffmpeg
or the environment variable IMAGEIO_FFMPEG_EXE.
"""

import contextlib
import errno
import os
import re
import shutil
import subprocess
import uuid
from collections.abc import Sequence
from typing import Any, NoReturn

import dm_env
import numpy as np

from repertory.components import actors
from repertory.components.config import settings
from repertory.environments.batches import vector_batch
from repertory.environments.rendering import rendering

FORMATS = ('mp4', 'gif')

# Default folder of videos, in the experiment's directory.
FOLDER = 'videos'

_FIRST = int(dm_env.StepType.FIRST)
_NAME = re.compile(r'episode_\d+_return_.+\.(?:mp4|gif)')

# Frames are enlarged by an integer factor up to this size.
_PIXELS = 480
# Most players show faster GIFs very slowly.
_MAX_GIF_FPS = 50.0
# Time limit for ffmpeg to end.
_END_SECONDS, _KILL_SECONDS = 120.0, 5.0

# H.264 with chroma at half the resolution plays everywhere; its colors are
# tagged as BT.709, which browsers assume.
_TO_MP4 = (
  'pad=ceil(iw/2)*2:ceil(ih/2)*2,'
  'scale=out_color_matrix=bt709:out_range=tv,format=yuv420p,'
  'setparams=color_primaries=bt709:color_trc=bt709:colorspace=bt709'
)
_MP4 = (
  *('-c:v', 'libx264', '-preset', 'veryfast', '-crf', '18'),
  # Lets players start before the whole file is loaded.
  *('-movflags', '+faststart'),
)
# A palette per frame, so that no frames need to be kept.
_TO_GIF = (
  'split[a][b];[a]palettegen=stats_mode=single:reserve_transparent=0[p];'
  '[b][p]paletteuse=new=1:dither=none'
)


class VideoError(Exception):
  """A video could not be written."""


def prepare(video: str | bool, video_format: str, directory: str) -> str:
  """Checks the video settings, and returns the folder, which may not exist.

  `video` is the folder, or True for the default in the experiment's directory.
  Raises SettingError if the format is unknown or the folder is not usable.
  """
  if video_format not in FORMATS:
    raise settings.SettingError(
      'video_format',
      f'must be one of {", ".join(FORMATS)}; got {video_format!r}.',
    )
  find_program()
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


def find_program() -> str:
  """Returns the path of ffmpeg; raises SettingError without one."""
  try:
    import imageio_ffmpeg  # noqa: PLC0415 An extra.

    program = imageio_ffmpeg.get_ffmpeg_exe()
    if shutil.which(program) is None:
      raise FileNotFoundError(f'{program} cannot be run')
    return program
  except (ImportError, OSError, RuntimeError) as error:
    raise settings.SettingError(
      'video',
      'needs the package imageio-ffmpeg with the program ffmpeg '
      f"({type(error).__name__}: {error}): pip install 'repertory[video]'.",
    ) from error


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
    self._left = actors.environment_loop.divide_episodes(
      num_episodes, environments.batch_size
    )
    self._files: dict[int, VideoFile] = {}  # By slot.

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

  def keep(self, episode: 'actors.environment_loop.Episode') -> None:
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

  def _begin(self, frames: np.ndarray) -> 'VideoFile':
    path = os.path.join(self._folder, f'.unfinished_{uuid.uuid4().hex}')
    try:
      os.makedirs(self._folder, exist_ok=True)
      open(path, 'xb').close()
    except OSError as error:
      raise settings.SettingError(
        'video', f'must be a folder for videos: {error}.'
      ) from error
    _, height, width, _ = frames.shape
    return VideoFile(path, height, width, self._rate, self._format)


def _format_return(episode_return: float) -> str:
  """Formats a return for a file name, such as '21.0' or '-123.457'."""
  text = f'{episode_return:.6g}'
  return text if re.search('[.a-z]', text) else f'{text}.0'


class VideoFile:
  """A video of equally sized frames, in a file that gets its final name last.

  Memory holds one frame, and a few in ffmpeg.
  """

  def __init__(
    self,
    path: str,
    height: int,
    width: int,
    frames_per_second: float,
    video_format: str,
  ):
    """Starts ffmpeg.

    Args:
      path: Temporary path until the video is complete; replaced if it exists.
      height: Height of a frame in pixels. Small frames are enlarged.
      width: Width of a frame in pixels.
      frames_per_second: Positive. A GIF has at most 50.
      video_format: One of `FORMATS`.

    Raises:
      SettingError: If ffmpeg is not available.
    """
    self._path = path
    self._shape = (height, width, 3)
    self._is_empty = True
    command = [
      *(find_program(), '-nostdin', '-hide_banner', '-loglevel', 'error', '-y'),
      *('-f', 'rawvideo', '-pixel_format', 'rgb24'),
      *('-video_size', f'{width}x{height}'),
      *_describe_output(height, width, frames_per_second, video_format),
      f'file:{path}',
    ]
    # In memory, because the disk may be full.
    self._errors = os.fdopen(os.memfd_create('errors'), 'r+b')
    # A new session, because Ctrl-C in a terminal reaches all its processes and
    # would make ffmpeg finish half a video.
    self._process = subprocess.Popen(
      command,
      bufsize=0,
      stdin=subprocess.PIPE,
      stdout=subprocess.DEVNULL,
      stderr=self._errors,
      start_new_session=True,
    )
    self._pipe: Any = self._process.stdin

  def add(self, frame: np.ndarray) -> None:
    """Adds a frame, uint8 `[H, W, 3]` in RGB.

    Raises:
      VideoError: If it has another size, or cannot be written; the file is
        removed then.
    """
    if frame.shape != self._shape:
      old, new = (f'{one[1]}x{one[0]}' for one in (self._shape, frame.shape))
      self._fail(f'frames must have the size of the first, {old}, got {new}')
    self._is_empty = False
    left = memoryview(frame.tobytes())
    try:
      while left:
        left = left[self._pipe.write(left) :]
    except BrokenPipeError:
      self._wait()
      self._fail(self._explain())

  def save_as(self, path: str) -> None:
    """Completes the video and renames it, in the same file system.

    Raises:
      VideoError: If that fails; the file is removed then.
    """
    if self._is_empty:
      self._fail('there are no frames')
    self._pipe.close()
    self._wait()
    if self._process.returncode:
      self._fail(self._explain())
    try:
      os.replace(self._path, path)
    except OSError as error:
      self._fail(str(error))
    self._errors.close()

  def discard(self) -> None:
    """Stops ffmpeg and removes the file, if it has no final name yet."""
    self._process.kill()
    with contextlib.suppress(subprocess.TimeoutExpired):  # A disk blocks it.
      self._process.wait(_KILL_SECONDS)
    self._pipe.close()
    self._errors.close()
    if os.path.lexists(self._path):
      os.remove(self._path)

  def _wait(self) -> None:
    try:
      self._process.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
      self._fail(f'ffmpeg has not ended within {_END_SECONDS:g} seconds')

  def _explain(self) -> str:
    """Returns ffmpeg's last messages."""
    self._errors.seek(0)
    lines = self._errors.read().decode(errors='replace').splitlines()
    output = ' '.join(lines[-2:])
    if os.strerror(errno.ENOSPC) in output:
      return f'the disk is full (ffmpeg: {output})'
    return f'ffmpeg ended with code {self._process.returncode}: {output}'

  def _fail(self, reason: str) -> NoReturn:
    self.discard()
    folder = os.path.dirname(self._path)
    raise VideoError(f'Videos in {folder} cannot be written: {reason}.')


def _describe_output(
  height: int, width: int, frames_per_second: float, video_format: str
) -> list[str]:
  """Returns the arguments of ffmpeg for the output."""
  factor = max(1, _PIXELS // max(height, width))
  enlarge = f'scale=iw*{factor}:ih*{factor}:flags=neighbor,format=rgb24'
  filters, codec, rate = _TO_MP4, _MP4, frames_per_second
  if video_format == 'gif':
    filters, codec, rate = _TO_GIF, (), min(rate, _MAX_GIF_FPS)
  return [
    # Other options would round it to usual rates.
    *('-r', f'{rate:g}', '-i', 'pipe:0', '-vf', f'{enlarge},{filters}'),
    *('-threads', '1', *codec, '-f', video_format),
  ]
