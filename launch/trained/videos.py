"""Videos of evaluation episodes; needs no TensorFlow.

Frames are encoded while rendering, by ffmpeg, from the package imageio-ffmpeg
or the environment variable IMAGEIO_FFMPEG_EXE.
"""

import contextlib
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from typing import Any, NoReturn

import dm_env
import numpy as np

from repertory.components import actors
from repertory.components.config import choices, settings
from repertory.environments.batches import vector_batch
from repertory.environments.rendering import rendering
from repertory.launch.experiments import directories
from repertory.launch.platform import child_processes

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
  choices.check('video_format', video_format, FORMATS)
  find_program()
  if video == '':
    raise settings.SettingError('video', 'must name a folder, got nothing.')
  folder = os.path.join(directory, FOLDER) if video is True else str(video)
  try:
    found = sorted(filter(_NAME.fullmatch, os.listdir(folder)))
  except FileNotFoundError:
    found = []
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
  directories.check_writable(folder, 'video')
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
    shown_return = float(f'{episode.episode_return:.6g}')
    name = f'episode_{self._num_done:03}_return_{shown_return}.{self._format}'
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
        os.makedirs(self._folder, exist_ok=True)
        path = os.path.join(self._folder, f'.unfinished_{os.getpid()}_{slot}')
        _, height, width, _ = frames.shape
        self._files[slot] = VideoFile(
          path, height, width, self._rate, self._format
        )
      for frame in frames:
        self._files[slot].add(frame)


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
    factor = max(1, _PIXELS // max(height, width))
    filters, codec = _TO_MP4, _MP4
    if video_format == 'gif':
      filters, codec = _TO_GIF, ()
      frames_per_second = min(frames_per_second, _MAX_GIF_FPS)
    command = [
      *(find_program(), '-nostdin', '-hide_banner', '-loglevel', 'error', '-y'),
      *('-f', 'rawvideo', '-pixel_format', 'rgb24'),
      # Other options than `-r` would round it to usual rates.
      *('-video_size', f'{width}x{height}', '-r', f'{frames_per_second:g}'),
      *('-i', 'pipe:0', '-threads', '1', *codec, '-f', video_format),
      '-vf',
      f'scale=iw*{factor}:ih*{factor}:flags=neighbor,format=rgb24,{filters}',
      f'file:{path}',
    ]
    # In memory where possible, because the disk may be full.
    self._errors = child_processes.memory_file()
    # A new session, because Ctrl-C in a terminal reaches all its processes and
    # would make ffmpeg finish half a video.
    self._process = subprocess.Popen(
      command,
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
    try:
      self._pipe.write(frame.tobytes())
      self._pipe.flush()
    except BrokenPipeError:
      self._finish()
      self._fail('ffmpeg has ended too early')

  def save_as(self, path: str) -> None:
    """Completes the video and renames it, in the same file system.

    Raises:
      VideoError: If that fails; the file is removed then.
    """
    self._pipe.close()
    self._finish()
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
    with contextlib.suppress(OSError):  # It has no reader any more.
      self._pipe.close()
    self._errors.close()
    if os.path.lexists(self._path):
      os.remove(self._path)

  def _finish(self) -> None:
    """Waits for ffmpeg's end; raises VideoError if it failed."""
    try:
      code = self._process.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
      self._fail(f'ffmpeg has not ended within {_END_SECONDS:g} seconds')
    if code:
      self._errors.seek(0)
      lines = self._errors.read().decode(errors='replace').splitlines()
      self._fail(f'ffmpeg ended with code {code}: {" ".join(lines[-2:])}')

  def _fail(self, reason: str) -> NoReturn:
    self.discard()
    folder = os.path.dirname(self._path)
    raise VideoError(f'Videos in {folder} cannot be written: {reason}.')
