"""Environments by name, for the command line and for other processes."""

import dataclasses
import difflib
import re
from collections.abc import Callable
from typing import NamedTuple

import dm_env

from repertory.environments import catch, gymnasium_adapter, memory_chain
from repertory.environments.wrappers import single_precision

_HOW_TO_LIST = (
  'List the names with `repertory environments` or `registry.names()`.'
)


class Entry(NamedTuple):
  """One kind of name.

  Attributes:
    pattern: The name, with its free parts in angle brackets.
    description: One line.
    requirement: What must be installed besides, empty if nothing.
  """

  pattern: str
  description: str
  requirement: str


class _Family(NamedTuple):
  entry: Entry
  syntax: re.Pattern
  make: Callable[[re.Match, int], dm_env.Environment]
  # Whether making one is so cheap that a factory tries it at once.
  cheap: bool


def _make_catch(match: re.Match, seed: int) -> dm_env.Environment:
  return catch.Catch(**_read_sizes(match), seed=seed)


def _make_memory_chain(match: re.Match, seed: int) -> dm_env.Environment:
  return memory_chain.MemoryChain(**_read_sizes(match), seed=seed)


def _make_gymnasium(match: re.Match, seed: int) -> dm_env.Environment:
  environment = gymnasium_adapter.make(match['id'], seed)
  return single_precision.SinglePrecision(environment)


def _read_sizes(match: re.Match) -> dict[str, int]:
  return {name: int(digits) for name, digits in match.groupdict().items()}


_FAMILIES = (
  _Family(
    Entry('catch', 'Catch a falling ball on a board of 10 rows, 5 columns', ''),
    re.compile('catch'),
    _make_catch,
    cheap=True,
  ),
  _Family(
    Entry(
      'catch:<rows>x<columns>',
      'Catch on a board of another size, for example catch:12x7',
      '',
    ),
    re.compile('catch:(?P<rows>[0-9]+)x(?P<columns>[0-9]+)'),
    _make_catch,
    cheap=True,
  ),
  _Family(
    Entry(
      'memory_chain',
      'Tell after 10 steps which of two cues was shown at first',
      '',
    ),
    re.compile('memory_chain'),
    _make_memory_chain,
    cheap=True,
  ),
  _Family(
    Entry(
      'memory_chain:<length>',
      'Memory chain of another length, for example memory_chain:30',
      '',
    ),
    re.compile('memory_chain:(?P<length>[0-9]+)'),
    _make_memory_chain,
    cheap=True,
  ),
  _Family(
    Entry(
      'gym:<id>',
      'A registered Gymnasium environment, for example gym:CartPole-v1',
      'pip install repertory[gymnasium]',
    ),
    re.compile('gym:(?P<id>.+)'),
    _make_gymnasium,
    cheap=False,
  ),
)


@dataclasses.dataclass(frozen=True)
class EnvironmentFactory:
  """Makes an environment of one name; can be pickled, so nodes can send it.

  Attributes:
    name: As in `names()`; checked at once, except that only making an
      environment shows whether Gymnasium knows an id.

  Raises:
    ValueError: If the name has none of the known forms or its numbers are not
      valid.
  """

  name: str

  def __post_init__(self):
    family, match = _find(self.name)
    if family.cheap:
      family.make(match, 0).close()

  def __call__(self, seed: int) -> dm_env.Environment:
    """Makes an environment of single precision.

    Args:
      seed: At least 0; environments with equal seeds behave alike.

    Raises:
      ImportError: If a package that the name needs is not installed.
      ValueError: If the name's parts or the seed are not valid.
    """
    family, match = _find(self.name)
    return family.make(match, seed)


def make_factory(name: str) -> EnvironmentFactory:
  """Returns the factory of the environments called `name`."""
  return EnvironmentFactory(name)


def make(name: str, seed: int) -> dm_env.Environment:
  """Makes the environment called `name`: see `EnvironmentFactory`."""
  return EnvironmentFactory(name)(seed)


def names() -> list[Entry]:
  """Returns all kinds of names, in the order in which to show them."""
  return [family.entry for family in _FAMILIES]


def _find(name: str) -> tuple[_Family, re.Match]:
  for family in _FAMILIES:
    match = family.syntax.fullmatch(name)
    if match:
      return family, match
  patterns = ', '.join(family.entry.pattern for family in _FAMILIES)
  close = _suggest(name)
  hint = f' Did you mean {close!r}?' if close else ''
  raise ValueError(
    f'`name`: expected one of {patterns}, got {name!r}.{hint} {_HOW_TO_LIST}'
  )


def _suggest(name: str) -> str | None:
  """Guesses the name that was meant, without importing anything for it."""
  if re.fullmatch(r'[\w/:.-]+-v[0-9]+', name) and ':' not in name:
    return f'gym:{name}'
  prefix, colon, rest = name.partition(':')
  prefixes = [family.entry.pattern.partition(':')[0] for family in _FAMILIES]
  close = difflib.get_close_matches(prefix.lower(), prefixes, 1, 0.5)
  if not close:
    return None
  guess = close[0] + colon + rest
  known = any(family.syntax.fullmatch(guess) for family in _FAMILIES)
  if known:
    return guess
  return next(
    family.entry.pattern
    for family in reversed(_FAMILIES)
    if family.entry.pattern.startswith(close[0])
  )
