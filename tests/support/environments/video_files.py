"""Reads video files."""

import gc
import warnings

import imageio.v3 as imageio


def read(path):
  """Returns the frames of a video, uint8 `[T, H, W, 3]`."""
  if str(path).endswith('.gif'):
    return imageio.imread(path, plugin='pillow', mode='RGB')
  with warnings.catch_warnings():
    # Imageio leaves a pipe to the decoder open.
    warnings.simplefilter('ignore', ResourceWarning)
    found = imageio.imread(path, plugin='FFMPEG')
    gc.collect()
  return found


def read_rate(path):
  """Returns the frame rate of an mp4, per second."""
  with warnings.catch_warnings():
    warnings.simplefilter('ignore', ResourceWarning)
    found = imageio.immeta(path, plugin='FFMPEG')['fps']
    gc.collect()
  return found
