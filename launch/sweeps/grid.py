"""Runs of a sweep: combinations of values, and the names of directories."""

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

# Text of each setting's value, by name: flags, and `config.<name>`.
Combination = Mapping[str, str]


@dataclasses.dataclass(frozen=True)
class SweepRun:
  """A run; those that differ in the seed only have the same group."""

  group: str
  seed: str
  arguments: tuple[str, ...] = dataclasses.field(hash=False)

  @property
  def path(self) -> str:
    """Directory of the run, relative to that of the sweep."""
    return os.path.join(self.group, f'seed_{self.seed}')


@dataclasses.dataclass(frozen=True)
class FinishedRun:
  """Result of a run."""

  run: SweepRun
  code: int | None  # -n if signal n ended it; None if it could not start.
  lines: Sequence[str]  # The last ones of its output.
  seconds: float
  was_stopped: bool = False  # On request of the sweep.


def combine(given: Mapping[str, values_lib.Values]) -> list[Combination]:
  """Returns all combinations, those of the first seed first."""
  names = sorted(given, key=lambda name: name != SEED)
  products = itertools.product(*(given[name] for name in names))
  return [dict(zip(names, product)) for product in products]


def make_run(group: str, combination: Combination) -> SweepRun:
  """Makes the run of a combination and its seed."""
  return SweepRun(group, combination[SEED], tuple(to_arguments(combination)))


def to_arguments(combination: Combination) -> list[str]:
  """Returns the arguments of `train`."""
  return [f'--{name}={text}' for name, text in combination.items()]


def distinguish(run: SweepRun, others: Sequence[SweepRun]) -> str:
  """Returns the arguments of a run that some of the others lack."""
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
  """Names a group's directory by values that were typed or else set."""
  texts = {
    axis.removeprefix('config.'): str(combination.get(axis, settings.get(axis)))
    for axis in axes
    if axis != SEED
  }
  name = ','.join(
    f'{axis}={re.sub("[^A-Za-z0-9_.+-]", "-", text)}'
    for axis, text in texts.items()
  )
  if len(name) <= _MAX_NAME and name not in taken:
    return name
  # Too long, or equal to another name after replacing characters.
  digest = hashlib.sha256(repr(sorted(settings.items())).encode()).hexdigest()
  return f'{name[:_MAX_NAME]}-{digest[:8]}'
