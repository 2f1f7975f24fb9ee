"""Rendering of boards and lines, for environments without their own.

An image is uint8 `[H, W, 3]` in RGB, the top row first.
"""

from collections.abc import Sequence

import numpy as np


def draw_board(board: np.ndarray) -> np.ndarray:
  """Draws a board in gray, one pixel per field.

  Args:
    board: Numbers `[H, W]`; 0 and less becomes black, 1 and more white.
  """
  gray = (255 * np.clip(board, 0, 1)).round().astype(np.uint8)
  return np.repeat(gray[..., np.newaxis], 3, axis=-1)


def draw_channels(board: np.ndarray) -> np.ndarray:
  """Draws a board of several kinds of objects, one pixel per field.

  Each kind has its own color; where several overlap, the last one is visible.
  Empty fields are black. The colors differ in hue and grow brighter: Green's
  "cubehelix", https://arxiv.org/abs/1108.5083, with start 0.5, -1.5 rotations,
  hue 1 and gamma 1, as in MinAtar's display.

  Args:
    board: `[H, W, C]`, nonzero where an object of the kind is.
  """
  count = board.shape[-1]
  seen = np.max((board != 0) * np.arange(1, count + 1), axis=-1)  # [H, W]
  # Evenly spaced between black and white, [1 + C, 1].
  brightness = np.linspace(0, 1, count + 2)[:-1, np.newaxis]
  angle = 2 * np.pi * (0.5 / 3 - 1.5 * brightness)
  amplitude = brightness * (1 - brightness) / 2
  cosine = np.array([-0.14861, -0.29227, 1.97294])
  sine = np.array([1.78277, -0.90649, 0.0])
  colors = brightness + amplitude * (
    cosine * np.cos(angle) + sine * np.sin(angle)
  )
  return (255 * np.clip(colors, 0, 1)).round().astype(np.uint8)[seen]


class Canvas:
  """White image to draw lines on, with its own coordinate system.

  Attributes:
    image: uint8 `[H, W, 3]`.
  """

  def __init__(self, height: int, width: int, scale: float):
    """Creates an empty canvas; (0, 0) is the center, and y grows upwards.

    Args:
      height: H, in pixels.
      width: W, in pixels.
      scale: Pixels per unit.
    """
    self.image = np.full((height, width, 3), 255, np.uint8)
    self._x = (np.arange(width) - (width - 1) / 2) / scale  # [W]
    self._y = ((height - 1) / 2 - np.arange(height)[:, np.newaxis]) / scale

  def draw_line(
    self,
    start: Sequence[float],
    end: Sequence[float],
    width: float,
    color: tuple[int, int, int],
  ) -> None:
    """Draws a line with round ends; one of length 0 is a dot."""
    (x, y), (step_x, step_y) = start, np.subtract(end, start)
    across, up = self._x - x, self._y - y  # [W], [H, 1]
    # Position of the nearest point on the line, from 0 to 1.
    along = (across * step_x + up * step_y) / max(
      step_x**2 + step_y**2, np.finfo(float).tiny
    )
    along = np.clip(along, 0, 1)  # [H, W]
    distance = np.hypot(across - along * step_x, up - along * step_y)
    self.image[distance <= width / 2] = color
