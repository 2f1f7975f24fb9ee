"""Validation of config dataclasses."""

import dataclasses
import numbers
import types
import typing
from collections.abc import Collection, Iterable, Iterator
from typing import Any

import numpy as np

from repertory.components.config.settings import SettingError

# Networks compute in single precision, where larger numbers are infinite.
MAX = float(np.finfo(np.float32).max)


def check(config: Any, name: str, holds: bool, expected: str) -> None:
  """Raises a SettingError for a field unless `holds`."""
  if not holds:
    found = getattr(config, name)
    raise SettingError(name, f'must be {expected}, got {found!r}.')


def check_types(config: Any) -> None:
  """Checks the types of all fields, on which the other checks rely.

  NumPy numbers are accepted, integers for floats, and lists for tuples. Fields
  of other types than those of the baseline agents are not checked.

  Raises:
    SettingError: If the value of a field has the wrong type.
  """
  for field in dataclasses.fields(config):
    name, kind = field.name, field.type
    value, kinds = getattr(config, name), [kind]
    if typing.get_origin(kind) in (types.UnionType, typing.Union):
      kinds = [kind for kind in typing.get_args(kind) if kind is not _NONE]
      if value is None or len(kinds) > 1:
        continue
    # A linear search, because annotations need not be hashable.
    for known, is_of_kind, expected in _KINDS:
      if kinds == [known]:
        suffix = ' or None' if kinds != [kind] else ''
        check(config, name, is_of_kind(value), expected + suffix)


def _is_number(value: Any) -> bool:
  return isinstance(value, numbers.Real) and not isinstance(value, bool)


def _is_integer(value: Any) -> bool:
  return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def _are_integers(value: Any) -> bool:
  return isinstance(value, tuple | list) and all(map(_is_integer, value))


_KINDS = (
  (bool, lambda value: isinstance(value, bool | np.bool_), 'True or False'),
  (int, _is_integer, 'an integer'),
  (float, _is_number, 'a number'),
  (str, lambda value: isinstance(value, str), 'a text'),
  (tuple[int, ...], _are_integers, 'a tuple of integers'),
)
_NONE = type(None)


def check_at_least(config: Any, minimum: int, *names: str) -> None:
  """Rejects fields that are below a minimum or infinite; None is valid."""
  for name, value in _numbers(config, names):
    check(config, name, value >= minimum, f'at least {minimum}')
  check_finite(config, *names)


def check_positive(config: Any, *names: str) -> None:
  """Rejects fields that are not positive and finite; None is valid."""
  for name, value in _numbers(config, names):
    check(config, name, value > 0, 'positive')
  check_finite(config, *names)


def check_finite(config: Any, *names: str) -> None:
  """Rejects fields that overflow in single precision; None is valid."""
  for name, value in _numbers(config, names):
    check(config, name, abs(value) <= MAX, 'finite in single precision')


def check_fraction(config: Any, *names: str) -> None:
  """Rejects fields outside [0, 1]."""
  for name, value in _numbers(config, names):
    check(config, name, 0 <= value <= 1, 'in [0, 1]')


def _numbers(config: Any, names: Iterable[str]) -> Iterator[tuple[str, Any]]:
  for name in names:
    value = getattr(config, name)
    if value is not None:
      yield name, value


def check_one_of(config: Any, name: str, known: Collection[str | None]) -> None:
  """Rejects values that are not in `known`."""
  check(config, name, getattr(config, name) in known, f'one of {list(known)}')


def check_sizes(config: Any, name: str) -> None:
  """Rejects tuples with integers below 1; None is valid."""
  sizes = getattr(config, name)
  holds = all(size >= 1 for size in sizes or ())
  check(config, name, holds, 'a tuple of integers of at least 1')


def check_not_empty(config: Any, name: str) -> None:
  """Rejects empty tuples."""
  check(config, name, len(getattr(config, name)) > 0, 'at least one number')


def check_support(config: Any) -> None:
  """Checks the support of a categorical return distribution.

  Args:
    config: Config with `vmin`, `vmax` and `num_atoms`.
  """
  check_at_least(config, 2, 'num_atoms')
  check_finite(config, 'vmin', 'vmax')
  is_above = 0 < config.vmax - config.vmin <= MAX
  check(
    config, 'vmax', is_above, f'above vmin = {config.vmin}, by a finite number'
  )
