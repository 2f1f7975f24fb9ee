"""Options in an environment's name: `atari:Pong?life_loss=true&noops=0`."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from repertory.components.config import settings


class Option(NamedTuple):
  """Option of a name pattern; values have the type of the default."""

  name: str
  default: bool | int | float
  description: str
  minimum: float = 0
  maximum: float = 1


def parse(text: str | None, known: Sequence[Option]) -> dict[str, Any]:
  """Parses the part of a name after its question mark.

  Args:
    text: Such as 'life_loss=true&noops=0'; None without a question mark.
    known: All valid options.

  Returns:
    The values of all valid options, defaults included.

  Raises:
    ValueError: If an option is unknown, comes twice, or has no valid value.
  """
  given = split(
    text, {one.name: describe(one.name, one.default) for one in known}
  )
  values = {option.name: option.default for option in known}
  for option in known:
    if option.name in given:
      text = given[option.name]
      value = settings.parse(option.name, text, type(option.default))
      # False for NaN too.
      if not option.minimum <= value <= option.maximum:
        raise ValueError(
          f'{option.name} must be from {option.minimum:g} to '
          f'{option.maximum:g}, got {text!r}.'
        )
      values[option.name] = value
  return values


def split(text: str | None, known: Mapping[str, str]) -> dict[str, str]:
  """Returns the text of each given option, of those known.

  Args:
    text: As for `parse`.
    known: Each valid option, with its default as written in a name.

  Raises:
    ValueError: If an option is unknown, comes twice or has no value.
  """
  given: dict[str, str] = {}
  for part in () if text is None else text.split('&'):
    name, equals, value = part.partition('=')
    if name not in known:
      listed = f'one of the options {", ".join(known.values())};'
      listed = listed if known else 'no options, this name has none,'
      hint = settings.did_you_mean(name, known, 3)
      raise ValueError(f'expected {listed} got {name!r}.{hint}')
    if not equals or name in given:
      raise ValueError(
        f'expected each option once, as <option>=<value>, got {text!r}.'
      )
    given[name] = value
  return given


def describe(name: str, default: Any) -> str:
  """Returns an option with its default, as written in a name."""
  if isinstance(default, bool):
    return f'{name}={str(default).lower()}'
  return (
    f'{name}={default:g}' if isinstance(default, float) else f'{name}={default}'
  )
