"""Checks of agents' settings."""

import dataclasses
import math
import numbers
from collections.abc import Collection, Iterable, Iterator
from typing import Any


def check(config: Any, name: str, holds: bool, expected: str) -> None:
  """Raises a ValueError that names the field, unless the condition holds."""
  if not holds:
    raise ValueError(f'{name} must be {expected}, got {getattr(config, name)}.')


def check_at_least(config: Any, minimum: int, *names: str) -> None:
  """Refuses fields below a minimum, and infinite ones."""
  for name, value in _numbers(config, names):
    check(config, name, value >= minimum, f'at least {minimum}')
    check(config, name, value < math.inf, 'finite')


def check_positive(config: Any, *names: str) -> None:
  """Refuses fields that are not positive and finite."""
  for name, value in _numbers(config, names):
    check(config, name, 0 < value < math.inf, 'positive')


def check_fraction(config: Any, *names: str) -> None:
  """Refuses fields outside [0, 1]."""
  for name, value in _numbers(config, names):
    check(config, name, 0 <= value <= 1, 'in [0, 1]')


def _numbers(config: Any, names: Iterable[str]) -> Iterator[tuple[str, Any]]:
  """Yields fields with their values, but for None where the type allows it.

  What is no number is refused, and a broken one where the field counts.
  """
  types: dict[str, Any] = {
    field.name: field.type for field in dataclasses.fields(config)
  }
  for name in names:
    value, kind = getattr(config, name), types[name]
    if value is None and isinstance(None, kind):
      continue
    check(config, name, isinstance(value, numbers.Real), 'a number')
    if kind in (int, int | None):
      check(config, name, isinstance(value, numbers.Integral), 'an integer')
    yield name, value


def check_one_of(config: Any, name: str, known: Collection[str]) -> None:
  """Refuses a name that is not known."""
  check(config, name, getattr(config, name) in known, f'one of {list(known)}')


def check_sizes(config: Any, name: str) -> None:
  """Refuses what is no tuple or list of integers of at least 1."""
  sizes = getattr(config, name)
  holds = isinstance(sizes, tuple | list) and all(
    isinstance(size, numbers.Integral) and int(size) >= 1 for size in sizes
  )
  check(config, name, holds, 'a tuple of integers of at least 1')
