"""Validation of config dataclasses."""

import dataclasses
import numbers
import typing
from collections.abc import Callable
from typing import Annotated, Any, TypeAlias

import numpy as np

from repertory.components.config import choices, settings
from repertory.components.config.settings import SettingError

# Networks compute in single precision, where larger numbers are infinite.
MAX = float(np.finfo(np.float32).max)


def check(config: Any, name: str, holds: bool, expected: str) -> None:
  """Raises a SettingError for a field unless `holds`."""
  if not holds:
    found = getattr(config, name)
    raise SettingError(name, f'must be {expected}, got {found!r}.')


def check_fields(config: Any) -> None:
  """Checks the types of all fields, and the values of annotated ones.

  NumPy numbers are accepted, integers for floats, and lists for tuples. Fields
  of other types than those of the baseline agents are not checked. Checks of
  values are those of types such as `PositiveInt`, of the class or its bases.

  Raises:
    SettingError: If the value of a field has the wrong type, or is invalid.
  """
  for field in dataclasses.fields(config):
    name, kinds = field.name, list(settings.parts_of(field.type))
    value, some = getattr(config, name), [k for k in kinds if k is not _NONE]
    if len(some) > 1 or (value is None and _NONE in kinds):
      continue
    if some and typing.get_origin(some[0]) is typing.Literal:
      known = typing.get_args(some[0])
      check(config, name, value in known, f'one of {list(known)}')
    # A linear search, because annotations need not be hashable.
    for known, is_of_kind, expected in _KINDS:
      if some == [known]:
        suffix = ' or None' if some != kinds else ''
        check(config, name, is_of_kind(value), expected + suffix)
  for base in type(config).__mro__:
    for name, kind in vars(base).get('__annotations__', {}).items():
      for part in settings.members_of(kind):
        for check_value in getattr(part, '__metadata__', ()):
          check_value(config, name)


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


def where(
  holds: Callable[[Any], bool], expected: str
) -> Callable[[Any, str], None]:
  """Returns a check of an `Annotated` field's value; None is valid."""

  def check_value(config: Any, name: str) -> None:
    value = getattr(config, name)
    check(config, name, value is None or holds(value), expected)

  return check_value


check_finite = where(lambda x: abs(x) <= MAX, 'finite in single precision')
check_fraction = where(lambda x: 0 <= x <= 1, 'in [0, 1]')


def check_positive(config: Any, name: str) -> None:
  """Rejects a field that is not positive and finite; None is valid."""
  where(lambda x: x > 0, 'positive')(config, name)
  check_finite(config, name)


def check_at_least(config: Any, minimum: int, *names: str) -> None:
  """Rejects fields that are below a minimum or infinite; None is valid."""
  check_minimum = where(lambda x: x >= minimum, f'at least {minimum}')
  for name in names:
    check_minimum(config, name)
    check_finite(config, name)


def at_least(minimum: int) -> Callable[[Any, str], None]:
  """Returns `check_at_least` for one `Annotated` field."""
  return lambda config, name: check_at_least(config, minimum, name)


def one_of(*known: str) -> Callable[[Any, str], None]:
  """Returns a check that an `Annotated` field is one of some values."""
  return where(lambda value: value in known, f'one of {list(known)}')


# Types of fields with bounds, for `check_fields`.
PositiveInt: TypeAlias = Annotated[int, at_least(1)]
NonNegativeInt: TypeAlias = Annotated[int, at_least(0)]
PositiveFloat: TypeAlias = Annotated[float, check_positive]
NonNegativeFloat: TypeAlias = Annotated[float, at_least(0)]
FiniteFloat: TypeAlias = Annotated[float, check_finite]
Fraction: TypeAlias = Annotated[float, check_fraction]
Rate: TypeAlias = Annotated[float, check_positive, check_fraction]
Share: TypeAlias = Annotated[float, where(lambda x: 0 <= x < 1, 'in [0, 1)')]
Sizes: TypeAlias = Annotated[
  tuple[int, ...],
  where(
    lambda sizes: all(size >= 1 for size in sizes),
    'a tuple of integers of at least 1',
  ),
]
NonEmptySizes: TypeAlias = Annotated[
  Sizes, where(lambda x: len(x) > 0, 'at least one number')
]
Body: TypeAlias = Annotated[str, one_of(*choices.BODIES)]
Core: TypeAlias = Annotated[str, one_of(*choices.CORES)]
ImageTorso: TypeAlias = Annotated[str, one_of(*choices.IMAGE_TORSOS)]
