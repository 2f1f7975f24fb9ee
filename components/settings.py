"""Settings: what their fields tell of themselves, and errors that name them.

Settings are frozen dataclasses. Their fields are told of by `describe`, which
the command line and the docs print, and read from text by `parse`.
"""

import contextlib
import dataclasses
import decimal
import difflib
import typing
from collections.abc import Iterable
from typing import Any, TypeVar

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
  """What is told of a setting: name, type, default, and its help."""

  name: str
  type: str
  default: Any
  help: str


def describe(settings_class: type) -> list[Setting]:
  """Returns what the fields of a dataclass of settings tell of themselves."""
  return [
    Setting(
      each.name,
      _type_name(each.type),
      each.default,
      each.metadata.get('help', ''),
    )
    for each in dataclasses.fields(settings_class)
  ]


def parse(name: str, value: Any, annotation: Any) -> Any:
  """Turns text, or what JSON made of a value, into the type of a setting.

  Args:
    name: The setting's, for the error.
    value: Text from the command line, or a plain value.
    annotation: The field's type: int, float, bool, str, a tuple of one of
      these, or one of these or None.

  Raises:
    SettingError: If the value does not fit.
  """
  text = str(annotation)
  if value is None or value == 'None':
    if type(None) in typing.get_args(annotation):
      return None
  elif 'tuple' in text:
    items = value.strip('()[]').split(',') if isinstance(value, str) else value
    if isinstance(items, (list, tuple)):
      item_type = annotation.__args__[0]
      with contextlib.suppress(ValueError):  # Told of the whole, below.
        return tuple(
          parse(name, item, item_type) for item in items if item != ''
        )
  elif 'bool' in text:
    if str(value).lower() in ('true', 'false'):
      return str(value).lower() == 'true'
  else:
    scalar = next(t for t in (int, float, str) if t.__name__ in text)
    try:
      is_wrong_number = isinstance(value, bool) or (
        scalar is int and isinstance(value, float)
      )
      if not is_wrong_number:
        return scalar(value)
    except (TypeError, ValueError):
      pass
  hint = write_whole(value) if 'int' in text else ''
  raise SettingError(
    name, f'must be of type {_type_name(annotation)}, got {value!r}.{hint}'
  )


def _type_name(annotation: Any) -> str:
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


def did_you_mean(name: str, known: Iterable[str]) -> str:
  """Returns ' Did you mean ...?' with the nearest known name, or nothing."""
  near = difflib.get_close_matches(name, list(known), n=1, cutoff=0.5)
  return f" Did you mean '{near[0]}'?" if near else ''
