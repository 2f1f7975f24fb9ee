"""All combinations of the values of a sweep, and what they are called."""

import dataclasses
import hashlib
import itertools
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

from repertory.launch.sweeps import values as values_lib

SEED = 'seed'
_MAX_NAME = 150  # Characters; file systems take 255 bytes.

# What was typed for each setting, by name: of flags, and `config.<name>`.
Combination = Mapping[str, str]


@dataclasses.dataclass(frozen=True)
class Run:
  """One of the runs of a sweep.

  Attributes:
    group: The directory of the runs that differ by their seeds alone, within
      that of the sweep.
    seed: What was typed for it.
    arguments: What to type behind `repertory train`, but for directories.
  """

  group: str
  seed: str
  arguments: tuple[str, ...] = dataclasses.field(hash=False)

  @property
  def path(self) -> str:
    """Its directory, within that of the sweep."""
    return os.path.join(self.group, f'seed_{self.seed}')


def combine(given: Mapping[str, values_lib.Values]) -> list[Combination]:
  """Returns all combinations.

  Those with one seed come one after another, and then those with the next: so
  all can be compared as soon as each has run once.
  """
  names = sorted(given, key=lambda name: name != SEED)
  products = itertools.product(*(given[name] for name in names))
  return [dict(zip(names, product)) for product in products]


def make_run(group: str, combination: Combination) -> Run:
  """Returns the run of a combination, which has a seed."""
  return Run(group, combination[SEED], tuple(to_arguments(combination)))


def group_of(path: str) -> str:
  """Returns the group of a run's path."""
  return os.path.dirname(path)


def to_arguments(combination: Combination) -> list[str]:
  """Returns what to type behind `repertory train`."""
  return [f'--{name}={text}' for name, text in combination.items()]


def tell_apart(run: Run, others: Sequence[Run]) -> str:
  """Returns the arguments of a run that not all others have."""
  return ' '.join(
    argument
    for argument in run.arguments
    if not all(argument in other.arguments for other in others)
  )


def name_group(
  combination: Combination,
  settings: Mapping[str, Any],
  axes: Sequence[str],
  taken: Mapping[str, Any],
) -> str:
  """Returns a name for a directory, by what differs.

  Args:
    combination: What was typed.
    settings: What it means, for what was not.
    axes: Names of the settings that differ within the sweep.
    taken: Names that others have.
  """
  name = ','.join(
    f'{axis.removeprefix("config.")}='
    + _as_file_name(str(combination.get(axis, settings.get(axis))))
    for axis in axes
    if axis != SEED
  )
  if len(name) <= _MAX_NAME and name not in taken:
    return name
  # Too long, or they differ in what file names do not tell.
  digest = hashlib.sha256(repr(sorted(settings.items())).encode()).hexdigest()
  return f'{name[:_MAX_NAME]}-{digest[:8]}'


def _as_file_name(text: str) -> str:
  return re.sub('[^A-Za-z0-9_.+-]', '-', text)
