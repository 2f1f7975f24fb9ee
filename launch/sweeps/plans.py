"""Plans of sweeps, which yield their runs: a grid of combinations of values."""

import abc
import itertools
import math
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from repertory.components.config.settings import SettingError
from repertory.launch.sweeps import manifest as manifest_lib
from repertory.launch.sweeps import values as values_lib

# Function from arguments of `train` to settings, which may raise ValueError.
Read = Callable[[Sequence[str]], Mapping[str, Any]]
_MAX_RUNS = 10_000  # More are probably a mistake.


class SweepPlan(abc.ABC):
  """Plan of a sweep, and source of its runs once it is open.

  Attributes:
    settings: Settings of one of its runs.
    description: Numbers of its runs, and of those done, in words.
  """

  settings: Mapping[str, Any]
  description: str

  def __init__(self):
    self._waiting: deque[manifest_lib.SweepRun] = deque()

  @abc.abstractmethod
  def untried(
    self, manifest: manifest_lib.SweepManifest
  ) -> list[manifest_lib.SweepRun]:
    """Returns a run of each new combination; may change the manifest."""

  @abc.abstractmethod
  def open(self, manifest: manifest_lib.SweepManifest) -> None:
    """Adds its runs to a manifest, in memory, and queues those to do."""

  def next(self) -> manifest_lib.SweepRun | None:
    """Returns a run to start; None if none is available yet."""
    return self._waiting.popleft() if self._waiting else None

  def end(self, run: manifest_lib.SweepRun) -> None:  # noqa: B027
    """Processes the end of a run, whose exit code is in the manifest."""

  def conclude(self) -> list[str]:
    """Returns lines to print at the end."""
    return []


class ListPlan(SweepPlan):
  """Plan of given combinations.

  Their groups are named by the axes, which are the settings that differ.
  """

  def __init__(
    self,
    combinations: Sequence[manifest_lib.Combination],
    axes: Sequence[str],
    read: Read,
  ):
    """Reads all combinations, as `train` would."""
    super().__init__()
    self._axes = axes
    self._asked = [
      (one, read(manifest_lib.to_arguments(one))) for one in combinations
    ]
    self.settings = self._asked[0][1]

  def untried(self, manifest):
    known = set(manifest.groups)
    runs = manifest.add_grid(self._asked, self._axes)
    firsts = {run.group: run for run in reversed(runs)}
    return [
      run for run in runs if run is firsts[run.group] and run.group not in known
    ]

  def open(self, manifest: manifest_lib.SweepManifest) -> None:
    runs = manifest.add_grid(self._asked, self._axes)
    groups = {run.group for run in runs}
    done = manifest.done()
    missing = [run for run in runs if run.path not in done]
    self.description = (
      f'{count(runs, "run")}, {count(groups, "combination")}; '
      f'done already: {len(runs) - len(missing)}'
    )
    self._waiting += missing


class GridPlan(ListPlan):
  """Plan of a grid: all combinations of values."""

  def __init__(self, values: values_lib.Given, read: Read):
    """Reads all combinations, as `train` would."""
    number = math.prod(map(len, values.values()))
    if number > _MAX_RUNS:
      raise SettingError(
        '',
        f'The values must have at most {_MAX_RUNS:,} combinations, got '
        f'{number:,}.',
      )
    axes = [name for name, texts in values.items() if len(texts) > 1]
    super().__init__(combine(values), axes, read)


def combine(
  given: Mapping[str, values_lib.Values],
) -> list[manifest_lib.Combination]:
  """Returns all combinations, those of the first seed first."""
  names = sorted(given, key=lambda name: name != manifest_lib.SEED)
  products = itertools.product(*(given[name] for name in names))
  return [dict(zip(names, product)) for product in products]


def count(things: Collection, what: str) -> str:
  """Returns the number of things with their name."""
  return f'{len(things)} {what}{"s" if len(things) != 1 else ""}'
