"""Sparklines: curves in one line of text."""

import itertools
import math
from collections.abc import Sequence

BLOCKS = '▁▂▃▄▅▆▇█'
ASCII_BLOCKS = '_.-=+*#@'


class History:
  """Stores a series in bounded memory.

  When full, it drops every second value and from then on stores every second
  one, so the stored values stay evenly spaced.
  """

  def __init__(self, capacity: int = 512):
    """Creates an empty history of at most `capacity` values, at least 2."""
    if capacity < 2:
      raise ValueError(f'capacity: expected at least 2, found {capacity}')
    self._capacity = capacity
    self._stride = 1
    self._num_added = 0
    self._values: list[float] = []

  def add(self, value: float) -> None:
    """Adds the next value."""
    if self._num_added % self._stride == 0:
      if len(self._values) == self._capacity:
        self._values = self._values[::2]
        self._stride *= 2
      if self._num_added % self._stride == 0:
        self._values.append(value)
    self._num_added += 1

  @property
  def values(self) -> tuple[float, ...]:
    """The stored values, oldest first."""
    return tuple(self._values)


def draw(values: Sequence[float], width: int, blocks: str = BLOCKS) -> str:
  """Draws a series between its minimum and maximum.

  Args:
    values: The series; non-finite values are skipped.
    width: Maximum number of characters. A longer series is averaged in equal
      pieces.
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
