"""Settings: descriptions and parsing of their fields, and errors naming them.

Settings are frozen dataclasses. `describe` returns their fields' descriptions,
which the command line and the docs print, and `parse` reads their values from
text.
"""

import contextlib
import dataclasses
import decimal
import difflib
import numbers
import types
import typing
from collections.abc import Iterable
from typing import Any, TypeVar

import numpy as np

T = TypeVar('T')


class InputError(ValueError):
  """Input of the user is invalid; the message alone explains it."""


class SettingError(InputError):
  """A setting is invalid, or another setting would help.

  Python and the command line spell settings differently. So names are kept
  apart from the text: code that prints the error inserts the spelling and
  leaves the text unchanged.

  Attributes:
    setting: Name of the invalid setting: a field of `launch.Experiment`, of an
      agent's config or of a topology's settings, or an argument of
      `launch.run`. Empty if the text does not begin with a setting.
    problem: The problem, to follow the name: 'must be at least 1, got 0.'.
    remedy: Settings that would help, with their values.
  """

  def __init__(self, setting: str, problem: str, **remedy: Any):
    super().__init__(setting, problem)
    self.setting = setting
    self.problem = problem
    self.remedy = remedy

  def format(self, setting: str, *remedies: str) -> str:
    """Returns the message with other spellings of the settings.

    Args:
      setting: Spelling of the invalid setting.
      *remedies: Spellings of the settings that would help, with their values.
    """
    message = f'{setting} {self.problem}' if setting else self.problem
    if not remedies:
      return message
    return f'{message.removesuffix(".")} ({", ".join(remedies)}).'

  def __str__(self) -> str:
    remedies = [f'{name}={value!r}' for name, value in self.remedy.items()]
    return self.format(self.setting, *remedies)


def text_of(error: BaseException) -> str:
  """Returns the message of an error, or the name of its class if empty."""
  text = str(error)
  return text if text.strip() else type(error).__name__


def field(default: T, help_text: str) -> T:
  """Declares a setting with its description.

    n_step: int = settings.field(3, 'Steps a transition spans: Rainbow.')

  Args:
    default: The default, immutable.
    help_text: The setting's meaning, and the source of its default.
  """
  return dataclasses.field(default=default, metadata={'help': help_text})


@dataclasses.dataclass(frozen=True)
class Setting:
  """Description of a setting.

  Attributes:
    name: The field's name.
    type: The type as text.
    default: `dataclasses.MISSING` for required settings.
    help: Its meaning, and the source of its default.
  """

  name: str
  type: str
  default: Any
  help: str


def describe(settings_class: type) -> list[Setting]:
  """Returns the descriptions of the fields of a settings dataclass."""
  kinds = typing.get_type_hints(settings_class)
  found = []
  for each in dataclasses.fields(settings_class):
    default = each.default
    if each.default_factory is not dataclasses.MISSING:
      default = each.default_factory()
    text, kind = each.metadata.get('help', ''), _type_name(kinds[each.name])
    if each.init:
      found.append(Setting(each.name, kind, default, text))
  return found


def parse(name: str, value: Any, annotation: Any) -> Any:
  """Converts text or a JSON value to the type of a setting.

  Args:
    name: The setting's name, for the error.
    value: Text from the command line, or a plain value.
    annotation: The setting's type: int, float, bool, str, a literal, a tuple of
      these, or a union of such types and None. Values of other types have no
      text form, and are returned unchanged.

  Raises:
    SettingError: If the value does not fit.
  """
  kinds = parts_of(annotation)
  # None first: the text 'None' of an optional setting is None.
  for kind in sorted(kinds, key=lambda kind: kind is not _NONE):
    with contextlib.suppress(TypeError, ValueError):
      return _read(value, kind)
  hint = write_whole(value) if int in kinds else ''
  expected = _type_name(annotation)
  if not expected.startswith('one of '):
    expected = f'of type {expected}'
  raise SettingError(name, f'must be {expected}, got {value!r}.{hint}')


_NONE = type(None)


def _read(value: Any, kind: Any) -> Any:
  """Converts a value to a type; raises ValueError or TypeError."""
  origin, arguments = typing.get_origin(kind), typing.get_args(kind)
  if origin is typing.Literal:
    by_text = {str(known): known for known in arguments}
    if str(value) in by_text:
      return by_text[str(value)]
  elif origin is tuple:
    return _read_tuple(value, arguments)
  elif kind is _NONE:
    if value is None or value == 'None':
      return None
  elif kind is bool:
    if str(value).lower() in ('true', 'false'):
      return str(value).lower() == 'true'
  elif kind in (int, float, str):
    number: Any = numbers.Integral if kind is int else numbers.Real
    if isinstance(value, (str, number)) and not isinstance(value, bool):
      return kind(value)
  elif kind is Any or isinstance(value, origin or kind):
    return value
  raise ValueError(f'{value!r} is not of type {kind}')


def _read_tuple(value: Any, kinds: tuple[Any, ...]) -> tuple[Any, ...]:
  if isinstance(value, str):
    value = [item for item in value.strip('()[]').split(',') if item != '']
  if not isinstance(value, (list, tuple)):
    raise TypeError('no list')
  if kinds[-1] is ...:
    kinds = kinds[:1] * len(value)
  return tuple(parse('', *pair) for pair in zip(value, kinds, strict=True))


def members_of(annotation: Any) -> tuple[Any, ...]:
  """Returns the types of a union, or a single type."""
  is_union = typing.get_origin(annotation) in (types.UnionType, typing.Union)
  return typing.get_args(annotation) if is_union else (annotation,)


def parts_of(annotation: Any) -> tuple[Any, ...]:
  """Returns the members of a type without their bounds."""
  return tuple(
    part.__origin__ if typing.get_origin(part) is typing.Annotated else part
    for part in members_of(annotation)
  )


def kind_of(annotation: Any) -> type:
  """Returns tuple, bool, int, float or str: the base type of a setting.

  For a union, the first of these that is part of it. Other types are str,
  because they are given as text.
  """
  parts = parts_of(annotation)
  kinds = [typing.get_origin(part) or part for part in parts]
  known = (tuple, bool, int, float)
  return next((kind for kind in known if kind in kinds), str)


def _type_name(annotation: Any) -> str:
  if typing.get_origin(annotation) is typing.Literal:
    return f'one of {", ".join(map(str, typing.get_args(annotation)))}'
  parts = parts_of(annotation)
  if len(parts) > 1:  # Also an `Optional`.
    return ' | '.join(
      'None' if one is _NONE else _type_name(one) for one in parts
    )
  # A `tuple[int, ...]` is a type too, whose name is 'tuple'.
  is_plain = isinstance(annotation, type) and not typing.get_args(annotation)
  return annotation.__name__ if is_plain else str(annotation)


def write_whole(value: Any) -> str:
  """Returns ' Write 10000.' for '1e4', or '' if it is not an integer."""
  try:
    number = decimal.Decimal(value)
    is_whole = number.adjusted() < 20 and number == int(number)
  except (ArithmeticError, TypeError, ValueError):
    return ''
  return f' Write {int(number)}.' if is_whole else ''


def did_you_mean(name: str, known: Iterable[str], most: int = 1) -> str:
  """Returns ' Did you mean ...?' with the nearest known names, or ''."""
  near = [repr(each) for each in nearest(name, known, most)]
  return f' Did you mean {" or ".join(near)}?' if near else ''


def nearest(name: str, known: Iterable[str], most: int = 1) -> list[str]:
  """Returns the known names that are similar, ignoring case."""
  by_folded = {each.lower(): each for each in known}
  near = difflib.get_close_matches(name.lower(), by_folded, most, 0.5)
  return [by_folded[each] for each in near]


def plain(value: Any) -> Any:
  """Converts a value to plain JSON types."""
  if isinstance(value, np.generic):
    value = value.item()
  if isinstance(value, (tuple, list)):
    return [plain(item) for item in value]
  if isinstance(value, dict):
    return {str(key): plain(item) for key, item in value.items()}
  if value is None or isinstance(value, (bool, int, float, str)):
    return value
  return repr(value)
