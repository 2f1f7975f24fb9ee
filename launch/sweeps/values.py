"""Parses the values of a sweep's setting: one value, several, or a range.

    1e-3               a value
    1e-3,3e-4          two values
    [64,64],[256]      two lists, for a setting that is one
    1e-5..1e-2:log     a range, from which a study samples values

Brackets group values that contain commas. Settings that are lists require them,
as a list would look like several values otherwise.
"""

import dataclasses
import re
from collections.abc import Mapping
from typing import Any

from repertory.components.config import settings
from repertory.components.config.settings import SettingError

# Text of each value, without brackets.
Values = tuple[str, ...]

_HELD = re.compile(r'\[[^][()]*\]|\([^][()]*\)')
_COMMA = re.compile(r',(?![^[(]*[])])')
_RANGE = re.compile(r'(.+?)\.\.(.+?)(:log)?')


@dataclasses.dataclass(frozen=True)
class Range:
  """Numbers from low to high, both included; integers if the setting is one."""

  text: str
  low: int | float
  high: int | float
  is_log: bool = False


# `Values` or a `Range` of each setting, by name: flags, and `config.<name>`.
Given = Mapping[str, Any]


def read(name: str, text: str, kind: type) -> Values | Range:
  """Parses the text of a setting of a type: tuple, bool, int, float or str."""
  if '..' in text and kind in (int, float):
    return _read_range(name, text, kind)
  if re.search(r'[][()]', _HELD.sub('', text)):
    raise SettingError(name, f'must close each bracket, got {text!r}.')
  # Split at the commas that are not within brackets.
  pieces = [piece.strip() for piece in _COMMA.split(text)]
  if kind is tuple and len(pieces) > 1 and not all(map(_is_held, pieces)):
    raise SettingError(
      name,
      f'is a list, so {text!r} may be one or several: write [...] for one '
      'list, or [...],[...] for several.',
    )
  if len(pieces) > 1 and '' in pieces:
    raise SettingError(
      name, f'must have a value before and after each comma, got {text!r}.'
    )
  return tuple(dict.fromkeys(map(_strip, pieces)))


def _read_range(name: str, text: str, kind: type) -> Range:
  match = _RANGE.fullmatch(text)
  if match is not None:
    low, high = (
      settings.parse(name, number, kind) for number in match.group(1, 2)
    )
    is_log = match[3] is not None
    # Rejects NaN, too.
    if low < high < float('inf') and (low > 0 or not is_log):
      return Range(text, low, high, is_log)
  raise SettingError(
    name,
    'must be values, or one increasing range such as 1..10, or above 0 such as '
    f'1e-5..1e-2:log; got {text!r}.',
  )


def _is_held(piece: str) -> bool:
  return _HELD.fullmatch(piece) is not None


def _strip(piece: str) -> str:
  return piece[1:-1] if _is_held(piece) else piece
