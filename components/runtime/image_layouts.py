"""Guesses of an image's axis order from its shape."""

from collections.abc import Sequence

# Minimum side length of a likely image; smaller arrays may be boards of tiles
# or tables.
PICTURE_PIXELS = 16

_USUAL_CHANNELS = (1, 3, 4)


def is_channels_first(shape: Sequence[int]) -> bool:
  """Returns whether a shape is probably `[C, H, W]` of an image, no board."""
  if len(shape) != 3 or not shape[0]:
    return False
  channels, *pixels = shape
  return _are_few(channels, pixels) and min(pixels) >= PICTURE_PIXELS


def is_channels_last(shape: Sequence[int]) -> bool:
  """Returns whether a shape is probably `[H, W, C]`, also of a square board."""
  if len(shape) != 3 or not shape[-1]:
    return False
  *pixels, channels = shape
  is_picture = min(pixels) >= PICTURE_PIXELS
  return _are_few(channels, pixels) and (is_picture or pixels[0] == pixels[1])


def _are_few(channels: int, pixels: Sequence[int]) -> bool:
  """Returns whether an axis looks like channels, compared with the others."""
  is_usual = channels in _USUAL_CHANNELS or pixels[0] == pixels[1]
  return is_usual and min(pixels) >= 2 * channels
