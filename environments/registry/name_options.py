"""Options in an environment's name: `atari:Pong?life_loss=true&noops=0`."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from repertory.components.config import settings
from repertory.environments.values.argument_checks import ArgumentError

REQUIRED = '...'  # Default of options that must be given.


class Option(NamedTuple):
  """Option of a name pattern.

  Values have the type of the default, or the `kind` if it is given. Numbers are
  from `minimum` to `maximum`, which other kinds than `int` ignore.
  """

  name: str
  default: Any
  description: str = ''
  minimum: float = 0
  maximum: float = 1
  kind: Any = None

  def __str__(self) -> str:
    """Returns the option with its default, as written in a name."""
    default = self.default
    if isinstance(default, bool):
      default = str(default).lower()
    elif isinstance(default, float):
      default = f'{default:g}'
    return f'{self.name}={default}'


def parse(
  name: str, known: Sequence[Option], general: Sequence[Option] = ()
) -> dict[str, Any]:
  """Returns the values of the options that a name has, of those known.

  `general` are options of all names.

  Raises:
    ArgumentError: If an option is unknown, comes twice, is missing, or has no
      valid value.
  """
  bare, mark, query = name.partition('?')
  by_name = {option.name: option for option in (*known, *general)}
  values: dict[str, Any] = {}
  try:
    for part in query.split('&') if mark else ():
      option, equals, text = part.partition('=')
      if option not in by_name:
        groups = (
          ', '.join(map(str, known)),
          ', '.join(option.name for option in general),
        )
        listed = ', or of all names, '.join(filter(None, groups))
        hint = settings.did_you_mean(option, by_name, 3)
        raise ValueError(
          f'expected one of the options {listed}; got {option!r}.{hint}'
        )
      if not equals and isinstance(by_name[option].default, bool):
        equals, text = '=', 'true'
      if not equals or option in values:
        raise ValueError(
          f'expected each option once, as <option>=<value>, got {query!r}.'
        )
      _, default, _, minimum, maximum, kind = by_name[option]
      value = settings.parse(option, text, kind or type(default))
      # False for NaN too.
      if kind in (None, int) and not minimum <= value <= maximum:
        raise ValueError(
          f'{option} must be from {minimum:g} to {maximum:g}, got {text!r}.'
        )
      values[option] = value
  except ValueError as error:
    raise ArgumentError('name', f'in {name!r}, {error}') from error
  missing = [
    str(option)
    for option in by_name.values()
    if option.default is REQUIRED and option.name not in values
  ]
  if missing:
    raise ArgumentError(
      'name',
      'expected a value for each argument without default, '
      f'{bare}?{"&".join(missing)}; got {name!r}.',
    )
  return values
