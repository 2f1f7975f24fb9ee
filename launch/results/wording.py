"""Formats numbers, times and names for people."""

import datetime
import math
from collections.abc import Sequence
from typing import SupportsFloat

NOTHING = '–'  # For unknown values.


def text(value: object) -> str:
  r"""Escapes unprintable characters in a path, or in a name from a file.

  Control characters would steer a terminal, and bytes of a path that are not
  UTF-8 (PEP 383) cannot be printed. ESC becomes `\x1b`, for example.
  """
  return ''.join(
    one if one.isprintable() else ascii(one)[1:-1] for one in str(value)
  )


def number(value: SupportsFloat | None) -> str:
  """Formats a number with at least four digits and thousands separators."""
  value = math.nan if value is None else float(value)
  if not math.isfinite(value):
    return NOTHING
  return f'{value:,.4g}' if abs(value) < 1e4 else f'{value:,.0f}'


def interval(low: SupportsFloat, high: SupportsFloat) -> str:
  """Formats the interval of one number."""
  if not math.isfinite(float(low)):
    return NOTHING
  return f'{number(low)} to {number(high)}'


def steps(taken: int | None, max_steps: int | None) -> str:
  """Formats the steps taken, and the total number if known."""
  if taken is None:
    return NOTHING
  return f'{taken:,}' if max_steps is None else f'{taken:,} of {max_steps:,}'


def time(when: datetime.datetime | None) -> str:
  """Formats a time to the minute, in the local time zone."""
  return NOTHING if when is None else f'{when.astimezone():%Y-%m-%d %H:%M}'


def align(lines: Sequence[Sequence[str]], are_right: Sequence[bool]) -> str:
  """Returns a text table with aligned columns.

  Args:
    lines: Cells of each line, the heading first.
    are_right: Whether each column is aligned to the right.
  """
  widths = [max(map(len, column)) for column in zip(*lines)]
  return '\n'.join(
    '  '.join(
      cell.rjust(width) if is_right else cell.ljust(width)
      for cell, width, is_right in zip(line, widths, are_right)
    ).rstrip()
    for line in lines
  )
