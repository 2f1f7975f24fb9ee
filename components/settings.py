"""Settings: what their fields tell of themselves, and errors that name them.

Settings are frozen dataclasses. Their fields are told of by `describe`, which
the command line and the docs print, and read from text by `parse`.
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


class SettingError(ValueError):
  """A setting does not fit, or another one would help.

  Users of Python and of the command line call settings by other names. So the
  names are kept apart from the text: who tells the error puts in what is to be
  written, and leaves the text as it is.

  Attributes:
    setting: Name of what does not fit: of a field of `launch.Experiment`, of an
      agent's config, of a topology's settings, or of an argument of
      `launch.run`. Empty if the text does not begin with one.
    problem: What is wrong, after the name: 'must be at least 1, got 0.'.
    remedy: Settings that would help, and what to set them to.
  """

  def __init__(self, setting: str, problem: str, **remedy: Any):
    super().__init__(setting, problem)
    self.setting = setting
    self.problem = problem
    self.remedy = remedy

  def tell(self, setting: str, *remedies: str) -> str:
    """Returns the message in other words for the settings.

    Args:
      setting: What to call the one that does not fit.
      *remedies: What to write to set those that would help, one for each.
    """
    message = f'{setting} {self.problem}' if setting else self.problem
    if not remedies:
      return message
    return f'{message.removesuffix(".")} ({", ".join(remedies)}).'

  def __str__(self) -> str:
    remedies = [f'{name}={value!r}' for name, value in self.remedy.items()]
    return self.tell(self.setting, *remedies)


def text_of(error: BaseException) -> str:
  """Returns the message of an error, or the name of its class if empty."""
  text = str(error)
  return text if text.strip() else type(error).__name__


def field(default: T, help_text: str) -> T:
  """Declares a setting, with what is told of it.

    n_step: int = settings.field(3, 'Steps a transition spans: Rainbow.')

  Args:
    default: Immutable.
    help_text: What the setting means, and where its default comes from.
  """
  return dataclasses.field(default=default, metadata={'help': help_text})


@dataclasses.dataclass(frozen=True)
class Setting:
  """What is told of a setting.

  Attributes:
    name: The field's.
    type: In words.
    default: `dataclasses.MISSING` if there is none, and it must be given.
    help: What it means, and where its default comes from.
  """

  name: str
  type: str
  default: Any
  help: str


def describe(settings_class: type) -> list[Setting]:
  """Returns what the fields of a dataclass of settings tell of themselves."""
  kinds = types_of(settings_class)
  return [
    Setting(
      each.name,
      _type_name(kinds[each.name]),
      _default_of(each),
      each.metadata.get('help', ''),
    )
    for each in dataclasses.fields(settings_class)
    if each.init
  ]


def _default_of(field: dataclasses.Field) -> Any:
  if field.default_factory is not dataclasses.MISSING:
    return field.default_factory()
  return field.default


def types_of(settings_class: type) -> dict[str, Any]:
  """Returns the types of attributes by name, those told as text, too.

  Raises:
    Exception: If such a text is no type that the module of the class knows.
  """
  return typing.get_type_hints(settings_class)


def parse(name: str, value: Any, annotation: Any) -> Any:
  """Turns text, or what JSON made of a value, into the type of a setting.

  Args:
    name: The setting's, for the error.
    value: Text from the command line, or a plain value.
    annotation: The setting's type: int, float, bool, str, a literal, a tuple
      of these, or a union of such types and None. What is of another type
      cannot be told as text, and is returned as it is.

  Raises:
    SettingError: If the value does not fit.
  """
  kinds = _parts_of(annotation)
  # Of the texts of optional ones, 'None' is None.
  for kind in sorted(kinds, key=lambda kind: kind is not _NONE):
    with contextlib.suppress(TypeError, ValueError):
      return _read(value, kind)
  hint = write_whole(value) if int in kinds else ''
  if isinstance(value, str) and not any(map(_is_readable, kinds)):
    hint = ' Only code can give such a value.'
  expected = _type_name(annotation)
  if not expected.startswith('one of '):
    expected = f'of type {expected}'
  raise SettingError(name, f'must be {expected}, got {value!r}.{hint}')


_NONE = type(None)


def _is_readable(kind: Any) -> bool:
  """Whether there is text for some values of a type."""
  is_scalar = kind in (bool, int, float, str)
  return is_scalar or typing.get_origin(kind) in (typing.Literal, tuple)


def _read(value: Any, kind: Any) -> Any:
  """Returns the value as one of a type; raises ValueError or TypeError."""
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
  raise ValueError(f'{value!r} is no {kind}')


def _read_tuple(value: Any, kinds: tuple[Any, ...]) -> tuple[Any, ...]:
  if isinstance(value, str):
    value = [item for item in value.strip('()[]').split(',') if item != '']
  if not isinstance(value, (list, tuple)):
    raise TypeError('no list')
  if kinds[-1] is ...:
    kinds = kinds[:1] * len(value)
  return tuple(parse('', *pair) for pair in zip(value, kinds, strict=True))


def _parts_of(annotation: Any) -> tuple[Any, ...]:
  """Returns the types of a union, or the one that it is."""
  is_union = typing.get_origin(annotation) in (types.UnionType, typing.Union)
  return typing.get_args(annotation) if is_union else (annotation,)


def kind_of(annotation: Any) -> type:
  """Returns tuple, bool, int, float or str: what a setting of a type holds.

  A union holds the first of these that is part of it. Anything else is str, for
  text is how it is told.
  """
  parts = _parts_of(annotation)
  kinds = [typing.get_origin(part) or part for part in parts]
  known = (tuple, bool, int, float)
  return next((kind for kind in known if kind in kinds), str)


def _type_name(annotation: Any) -> str:
  if typing.get_origin(annotation) is typing.Literal:
    return f'one of {", ".join(map(str, typing.get_args(annotation)))}'
  # A `tuple[int, ...]` is a type too, whose name is 'tuple'.
  is_plain = isinstance(annotation, type) and not typing.get_args(annotation)
  return annotation.__name__ if is_plain else str(annotation)


def write_whole(value: Any) -> str:
  """Returns ' Write 10000.' for '1e4', or nothing if it is no integer."""
  try:
    number = decimal.Decimal(value)
    is_whole = number.adjusted() < 20 and number == int(number)
  except (ArithmeticError, TypeError, ValueError):
    return ''
  return f' Write {int(number)}.' if is_whole else ''


def did_you_mean(name: str, known: Iterable[str], most: int = 1) -> str:
  """Returns ' Did you mean ...?' with the nearest known names, or nothing."""
  near = [repr(each) for each in nearest(name, known, most)]
  return f' Did you mean {" or ".join(near)}?' if near else ''


def nearest(name: str, known: Iterable[str], most: int = 1) -> list[str]:
  """Returns the known names that are close, whatever their case."""
  by_folded = {each.lower(): each for each in known}
  near = difflib.get_close_matches(name.lower(), by_folded, most, 0.5)
  return [by_folded[each] for each in near]


def plain(value: Any) -> Any:
  """Returns what JSON would make of a value."""
  if isinstance(value, np.generic):
    value = value.item()
  if isinstance(value, (tuple, list)):
    return [plain(item) for item in value]
  if isinstance(value, dict):
    return {str(key): plain(item) for key, item in value.items()}
  if value is None or isinstance(value, (bool, int, float, str)):
    return value
  return repr(value)
