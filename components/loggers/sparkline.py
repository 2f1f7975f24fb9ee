"""A curve in one line of text."""

import itertools
import math
from collections.abc import Sequence

BLOCKS = '▁▂▃▄▅▆▇█'
ASCII_BLOCKS = '_.-=+*#@'


class History:
  """Remembers a whole series in bounded memory.

  When it is full it forgets every second value and from then on takes every
  second one, so what is left stays evenly spaced from the first to the last.
  """

  def __init__(self, capacity: int = 512):
    """Makes an empty history of at most `capacity` values, at least 2."""
    if capacity < 2:
      raise ValueError(f'capacity: expected at least 2, found {capacity}')
    self._capacity = capacity
    self._stride = 1
    self._num_added = 0
    self._values: list[float] = []

  def add(self, value: float) -> None:
    """Takes the next value."""
    if self._num_added % self._stride == 0:
      if len(self._values) == self._capacity:
        self._values = self._values[::2]
        self._stride *= 2
      if self._num_added % self._stride == 0:
        self._values.append(value)
    self._num_added += 1

  @property
  def values(self) -> tuple[float, ...]:
    """What is remembered, oldest first."""
    return tuple(self._values)


def draw(values: Sequence[float], width: int, blocks: str = BLOCKS) -> str:
  """Draws a series from its least value to its greatest.

  Args:
    values: The series; what is not finite is passed over.
    width: Most characters. A longer series is averaged in even pieces.
    blocks: The characters for low to high.

  Returns:
    At most `width` characters; a constant series is drawn low.
  """
  values = [value for value in values if math.isfinite(value)]
  if not values or width < 1:
    return ''
  num = min(width, len(values))
  edges = [i * len(values) // num for i in range(num + 1)]
  means = [
    math.fsum(values[start:end]) / (end - start)
    for start, end in itertools.pairwise(edges)
  ]
  low, high = min(means), max(means)
  top = len(blocks) - 1
  scale = top / (high - low) if high > low else 0
  return ''.join(blocks[min(top, round((m - low) * scale))] for m in means)
