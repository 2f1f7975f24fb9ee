"""Video files, encoded frame by frame while rendering.

They are encoded by ffmpeg, from the package imageio-ffmpeg or the environment
variable IMAGEIO_FFMPEG_EXE.
"""

import contextlib
import errno
import os
import shutil
import subprocess
from typing import Any, NoReturn

import numpy as np

from repertory.components.config import settings

FORMATS = ('mp4', 'gif')

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


def check(video_format: str) -> None:
  """Checks that a format is known, and that there is ffmpeg."""
  if video_format not in FORMATS:
    raise settings.SettingError(
      'video_format',
      f'must be one of {", ".join(FORMATS)}; got {video_format!r}.',
    )
  find_program()


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
