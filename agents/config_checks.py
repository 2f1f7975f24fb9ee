"""Checks of settings, which are the fields of a dataclass."""

import dataclasses
import numbers
import types
import typing
from collections.abc import Collection, Iterable, Iterator
from typing import Any

import numpy as np

from repertory.components.settings import SettingError

# Networks compute in single precision, where larger numbers are infinite.
MAX = float(np.finfo(np.float32).max)


def check(config: Any, name: str, holds: bool, expected: str) -> None:
  """Raises a SettingError that names the field, unless the condition holds."""
  if not holds:
    found = getattr(config, name)
    raise SettingError(name, f'must be {expected}, got {found!r}.')


def check_types(config: Any) -> None:
  """Refuses fields that are not of their type; the other checks rely on it.

  NumPy's numbers pass, an integer passes for a float, and a list for a tuple.
  Fields of types that no agent here has, or that are told as text, are left to
  who added them.

  Raises:
    SettingError: Naming the first field whose value does not fit.
  """
  for field in dataclasses.fields(config):
    name, kind = field.name, field.type
    value, kinds = getattr(config, name), [kind]
    if typing.get_origin(kind) in (types.UnionType, typing.Union):
      kinds = [kind for kind in typing.get_args(kind) if kind is not _NONE]
      if value is None or len(kinds) > 1:
        continue
    # Not looked up: types in annotations need not be hashable.
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
  """Refuses fields below a minimum, and infinite ones; None passes."""
  for name, value in _numbers(config, names):
    check(config, name, value >= minimum, f'at least {minimum}')
  check_finite(config, *names)


def check_positive(config: Any, *names: str) -> None:
  """Refuses fields that are not positive and finite; None passes."""
  for name, value in _numbers(config, names):
    check(config, name, value > 0, 'positive')
  check_finite(config, *names)


def check_finite(config: Any, *names: str) -> None:
  """Refuses fields that single precision cannot hold; None passes."""
  for name, value in _numbers(config, names):
    check(config, name, abs(value) <= MAX, 'finite in single precision')


def check_fraction(config: Any, *names: str) -> None:
  """Refuses fields outside [0, 1]."""
  for name, value in _numbers(config, names):
    check(config, name, 0 <= value <= 1, 'in [0, 1]')


def _numbers(config: Any, names: Iterable[str]) -> Iterator[tuple[str, Any]]:
  for name in names:
    value = getattr(config, name)
    if value is not None:
      yield name, value


def check_one_of(config: Any, name: str, known: Collection[str | None]) -> None:
  """Refuses a name that is not known."""
  check(config, name, getattr(config, name) in known, f'one of {list(known)}')


def check_sizes(config: Any, name: str) -> None:
  """Refuses integers below 1 in a tuple; None passes."""
  sizes = getattr(config, name)
  holds = all(size >= 1 for size in sizes or ())
  check(config, name, holds, 'a tuple of integers of at least 1')


def check_support(config: Any) -> None:
  """Refuses a support of returns that is none: its ends, and its atoms.

  Args:
    config: Has `vmin`, `vmax` and `num_atoms`.
  """
  check_at_least(config, 2, 'num_atoms')
  check_finite(config, 'vmin', 'vmax')
  is_above = 0 < config.vmax - config.vmin <= MAX
  check(
    config, 'vmax', is_above, f'above vmin = {config.vmin}, by a finite number'
  )
