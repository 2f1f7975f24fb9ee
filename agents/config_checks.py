"""Checks of agents' settings."""

import dataclasses
import math
import numbers
from collections.abc import Collection
from typing import Any


def check(config: Any, name: str, holds: bool, expected: str) -> None:
  """Raises a ValueError that names the field, unless the condition holds."""
  if not holds:
    raise ValueError(f'{name} must be {expected}, got {getattr(config, name)}.')


def check_at_least(config: Any, minimum: int, *names: str) -> None:
  """Refuses fields below a minimum, and broken numbers where they count."""
  counts = {
    field.name
    for field in dataclasses.fields(config)
    if field.type in (int, int | None)
  }
  for name in names:
    value = getattr(config, name)
    is_whole = name not in counts or isinstance(value, numbers.Integral)
    check(config, name, is_whole, 'an integer')
    check(config, name, getattr(config, name) >= minimum, f'at least {minimum}')


def check_positive(config: Any, *names: str) -> None:
  """Refuses fields that are not positive and finite."""
  for name in names:
    check(config, name, 0 < getattr(config, name) < math.inf, 'positive')


def check_fraction(config: Any, *names: str) -> None:
  """Refuses fields outside [0, 1]."""
  for name in names:
    check(config, name, 0 <= getattr(config, name) <= 1, 'in [0, 1]')


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
