"""Schedules: settings that change over the learner steps of a run.

    linear(3e-4,0)                             from 3e-4 to 0
    cosine(3e-4,0)                             the same along half a cosine
    piecewise(3e-4,0.5:1e-4,0.8:1e-5)          one constant after the other
    linear(3e-4,0,steps=10000)                 over 10,000 learner steps

A schedule spans the whole run, or `steps` learner steps, and keeps its last
value afterwards. Other libraries: `optax.linear_schedule`,
`optax.cosine_decay_schedule` and `optax.piecewise_constant_schedule`, with
numbers of steps; in Stable-Baselines3, functions of the remaining progress.
"""

import dataclasses
import functools
import itertools
import math
import re
from collections.abc import Sequence
from typing import Any

from repertory.components.config.settings import SettingError

_SYNTAX = re.compile(r'\s*([\w.]+)\s*\((.*)\)\s*')
_EXPECTED = (
  'must be linear(start,end), cosine(start,end) or piecewise(value,'
  'fraction:value,...) with finite numbers and increasing fractions of the '
  "run between 0 and 1, and optionally ',steps=10000', an integer of at least "
  '1, at the end'
)


@dataclasses.dataclass(frozen=True)
class _Parts:
  kind: str
  values: tuple[float, ...]
  fractions: tuple[float, ...]  # Begin of each value, for 'piecewise'.
  num_steps: int | None


class Schedule(str):
  """Schedule of a setting: its text, in a canonical form.

  As a text it is immutable, and equal to its form in JSON and in checkpoints.

  Attributes:
    kind: 'linear', 'cosine' or 'piecewise'.
    values: Values in their order: start and end, or all constants.
    fractions: Fractions of the length at which `values` are reached, from 0.
    num_steps: Length in learner steps; None for the whole run.
  """

  def __new__(cls, text: str, setting: str = 'schedule'):
    """Parses a text; `setting` names it in the error.

    Raises:
      SettingError: If it is not a schedule.
    """
    try:
      parts = _parse(text)
    except ValueError as error:
      raise SettingError(setting, f'{_EXPECTED}, got {text!r}.') from error
    schedule = super().__new__(cls, _write(parts))
    schedule._parts = parts
    return schedule

  _parts: _Parts

  @property
  def kind(self) -> str:
    return self._parts.kind

  @property
  def values(self) -> tuple[float, ...]:
    return self._parts.values

  @property
  def fractions(self) -> tuple[float, ...]:
    return self._parts.fractions

  @property
  def num_steps(self) -> int | None:
    return self._parts.num_steps

  def value(self, fraction: float) -> float:
    """Returns the value after a fraction of the length, in [0, 1]."""
    if self.kind == 'piecewise':
      reached = sum(begin <= fraction for begin in self.fractions)
      return self.values[reached - 1]
    start, end = self.values
    if self.kind == 'cosine':
      fraction = 0.5 * (1 - math.cos(math.pi * fraction))
    return (1 - fraction) * start + fraction * end


def linear(start: float, end: float, steps: int | None = None) -> Any:
  """Returns the linear schedule from `start` to `end`.

    PPOConfig(learning_rate=schedules.linear(3e-4, 0.0))

  Args:
    steps: Length in learner steps; None for the whole run.
  """
  return _make('linear', [start, end], steps)


def cosine(start: float, end: float, steps: int | None = None) -> Any:
  """Returns the schedule from `start` to `end` along half a cosine.

  It changes slowly at both ends. See https://arxiv.org/abs/1608.03983, equation
  5, without restarts. For arguments see `linear`.
  """
  return _make('cosine', [start, end], steps)


def piecewise(
  start: float, *changes: tuple[float, float], steps: int | None = None
) -> Any:
  """Returns the piecewise constant schedule.

  Args:
    start: The first value.
    *changes: Pairs of a fraction of the length and the value from there on.
    steps: Length in learner steps; None for the whole run.
  """
  try:
    pairs = [f'{begin}:{value}' for begin, value in changes]
  except (TypeError, ValueError) as error:
    raise SettingError(
      'schedule',
      'must be piecewise(value, (fraction, value), ...), '
      f'got {(start, *changes)!r}.',
    ) from error
  return _make('piecewise', [start, *pairs], steps)


def is_schedule(value: Any) -> bool:
  """Returns whether a value of a setting has the syntax of a schedule."""
  return isinstance(value, str) and _SYNTAX.fullmatch(value) is not None


def of_config(config: Any) -> dict[str, Schedule]:
  """Returns the schedules among the fields of a config, by name."""
  return {
    name: value
    for name, value in getattr(config, '__dict__', {}).items()
    if isinstance(value, Schedule)
  }


def _make(kind: str, values: Sequence[Any], steps: int | None) -> Schedule:
  end = [] if steps is None else [f'steps={steps}']
  return Schedule(f'{kind}({",".join(map(str, [*values, *end]))})')


@functools.cache
def _parse(text: str) -> _Parts:
  """Parses a schedule, or raises ValueError."""
  match = _SYNTAX.fullmatch(text)
  if match is None or match[1] not in ('linear', 'cosine', 'piecewise'):
    raise ValueError('syntax')
  kind, pieces = match[1], [piece.strip() for piece in match[2].split(',')]
  num_steps = None
  if pieces[-1].startswith('steps='):
    num_steps = int(pieces.pop().removeprefix('steps='))
  if kind == 'piecewise':
    pairs = [piece.split(':') for piece in pieces[1:]]
    fractions = [0.0, *(float(begin) for begin, _ in pairs)]
    values = [float(pieces[0]), *(float(value) for _, value in pairs)]
  else:
    values, fractions = [float(piece) for piece in pieces], [0.0, 1.0]
  are_valid = (
    len(values) >= 2
    and len(values) == len(fractions)
    and all(map(math.isfinite, values))
    and all(one < other for one, other in itertools.pairwise(fractions))
    and (kind != 'piecewise' or fractions[-1] < 1)
    and (num_steps is None or num_steps >= 1)
  )
  if not are_valid:
    raise ValueError('values')
  return _Parts(kind, tuple(values), tuple(fractions), num_steps)


def _write(parts: _Parts) -> str:
  """Returns the canonical text: the shortest that has the same numbers."""
  numbers = [repr(value).removesuffix('.0') for value in parts.values]
  if parts.kind == 'piecewise':
    begins = [f'{begin!r}:' for begin in parts.fractions]
    numbers = [''.join(pair) for pair in zip(['', *begins[1:]], numbers)]
  if parts.num_steps is not None:
    numbers.append(f'steps={parts.num_steps}')
  return f'{parts.kind}({",".join(numbers)})'
