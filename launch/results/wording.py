"""Formats numbers, times and names for people."""

import datetime
import math
import os
from collections.abc import Sequence
from typing import SupportsFloat

from repertory.components.loggers import figures
from repertory.launch.results import aggregates

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


def interval(value: aggregates.Interval) -> str:
  """Formats the interval of one number."""
  if not math.isfinite(value.low):
    return NOTHING
  return f'{number(value.low)} to {number(value.high)}'


def steps(taken: int | None, max_steps: int | None) -> str:
  """Formats the steps taken, and the total number if known."""
  if taken is None:
    return NOTHING
  return f'{taken:,}' if max_steps is None else f'{taken:,} of {max_steps:,}'


def time(when: datetime.datetime | None) -> str:
  """Formats a time to the minute, in the local time zone."""
  return NOTHING if when is None else f'{when.astimezone():%Y-%m-%d %H:%M}'


def duration(seconds: float | None) -> str:
  """Formats a duration with its two largest units."""
  return NOTHING if seconds is None else figures.duration(seconds)


def rate(value: float | None) -> str:
  """Formats a rate per second."""
  if value is None:
    return NOTHING
  return f'{value:,.0f}' if value >= 10 else f'{value:.2g}'


def share(value: float | None) -> str:
  """Formats a share as a percentage."""
  return NOTHING if value is None else f'{value:.0%}'


def common_folder(paths: Sequence[str]) -> str:
  """Returns the deepest folder that contains all paths."""
  folders = [os.path.dirname(os.path.abspath(path)) for path in paths]
  return os.path.commonpath(folders) if folders else '.'
