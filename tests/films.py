"""Reads what films show."""

import gc
import warnings

import imageio.v3 as imageio


def read(path):
  """Returns the pictures of a film, uint8 `[T, H, W, 3]`."""
  if str(path).endswith('.gif'):
    return imageio.imread(path, plugin='pillow', mode='RGB')
  with warnings.catch_warnings():
    # Imageio leaves a pipe to the program open.
    warnings.simplefilter('ignore', ResourceWarning)
    found = imageio.imread(path, plugin='FFMPEG')
    gc.collect()
  return found


def read_rate(path):
  """Returns how many pictures of an mp4 are a second."""
  with warnings.catch_warnings():
    warnings.simplefilter('ignore', ResourceWarning)
    found = imageio.immeta(path, plugin='FFMPEG')['fps']
    gc.collect()
  return found
