"""Checks of agents' settings."""

import dataclasses
import numbers
import types
import typing
from collections.abc import Collection, Iterable, Iterator
from typing import Any

import numpy as np

# Networks compute in single precision, where larger numbers are infinite.
MAX = float(np.finfo(np.float32).max)


def check(config: Any, name: str, holds: bool, expected: str) -> None:
  """Raises a ValueError that names the field, unless the condition holds."""
  if not holds:
    found = getattr(config, name)
    raise ValueError(f'{name} must be {expected}, got {found!r}.')


def check_types(config: Any) -> None:
  """Refuses fields that are not of their type; the other checks rely on it.

  NumPy's numbers pass, an integer passes for a float, and a list for a tuple.
  """
  for field in dataclasses.fields(config):
    value, kind, suffix = getattr(config, field.name), field.type, ''
    if isinstance(kind, types.UnionType):  # Of one type and None.
      if value is None:
        continue
      kind, suffix = typing.get_args(kind)[0], ' or None'
    is_of_kind, expected = _KINDS[kind]
    check(config, field.name, is_of_kind(value), expected + suffix)


def _is_number(value: Any) -> bool:
  return isinstance(value, numbers.Real) and not isinstance(value, bool)


def _is_integer(value: Any) -> bool:
  return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def _are_integers(value: Any) -> bool:
  return isinstance(value, tuple | list) and all(map(_is_integer, value))


_KINDS = {
  bool: (lambda value: isinstance(value, bool | np.bool_), 'True or False'),
  int: (_is_integer, 'an integer'),
  float: (_is_number, 'a number'),
  str: (lambda value: isinstance(value, str), 'a text'),
  tuple[int, ...]: (_are_integers, 'a tuple of integers'),
}


def check_at_least(config: Any, minimum: int, *names: str) -> None:
  """Refuses fields below a minimum, and infinite ones; None passes."""
  for name, value in _numbers(config, names):
    check(config, name, value >= minimum, f'at least {minimum}')
    check(config, name, value <= MAX, 'finite in single precision')


def check_positive(config: Any, *names: str) -> None:
  """Refuses fields that are not positive and finite; None passes."""
  for name, value in _numbers(config, names):
    check(config, name, value > 0, 'positive')
    check(config, name, value <= MAX, 'finite in single precision')


def check_fraction(config: Any, *names: str) -> None:
  """Refuses fields outside [0, 1]."""
  for name, value in _numbers(config, names):
    check(config, name, 0 <= value <= 1, 'in [0, 1]')


def _numbers(config: Any, names: Iterable[str]) -> Iterator[tuple[str, Any]]:
  for name in names:
    value = getattr(config, name)
    if value is not None:
      yield name, value


def check_one_of(config: Any, name: str, known: Collection[str]) -> None:
  """Refuses a name that is not known."""
  check(config, name, getattr(config, name) in known, f'one of {list(known)}')


def check_sizes(config: Any, name: str) -> None:
  """Refuses integers below 1 in a tuple."""
  sizes = getattr(config, name)
  holds = all(size >= 1 for size in sizes)
  check(config, name, holds, 'a tuple of integers of at least 1')
