"""Plans of sweeps: a grid of combinations, or the trials of a study."""

import math
from collections import deque
from collections.abc import (
  Callable,
  Collection,
  Iterable,
  Mapping,
  Sequence,
  Sized,
)
from typing import Any, Protocol

from repertory.components.config.settings import SettingError
from repertory.launch import sweeps
from repertory.launch.sweeps import grid, pool, trials
from repertory.launch.sweeps import manifest as manifest_lib
from repertory.launch.sweeps import values as values_lib

# Function from arguments of `train` to settings, which may raise ValueError.
Read = Callable[[Sequence[str]], Mapping[str, Any]]
_MAX_RUNS = 10_000  # More are probably a mistake.

OBJECTIVES = trials.OBJECTIVES


class SweepPlan(Protocol):
  """Interface of plans of sweeps.

  Attributes:
    settings: Settings of one of its runs.
    retries: Whether failed runs are repeated the next time.
  """

  settings: Mapping[str, Any]
  retries: bool

  def join(self, manifest: manifest_lib.SweepManifest) -> None:
    """Adds its runs to a manifest, in memory; raises SettingError if unfit."""
    ...

  def describe(self) -> str:
    """Describes the plan in a few words."""
    ...

  def untried(self) -> list[grid.SweepRun]:
    """Returns runs for smoke tests before anything starts.

    They represent combinations that have never begun. Call `join` first.
    """
    ...

  def open(self) -> pool.RunSource:
    """Returns the source of the runs, which may write to the directory."""
    ...

  def num_done(self) -> int:
    """Returns the number of its runs that succeeded."""
    ...

  def max_steps(self, run: grid.SweepRun) -> int:
    """Returns the total environment steps of one of its runs."""
    ...

  def conclude(self) -> list[str]:
    """Returns lines to print at the end."""
    ...


class GridPlan:
  """Plan of a grid: all combinations of values."""

  retries = True

  def __init__(self, given: values_lib.Given, read: Read):
    """Reads all combinations.

    Args:
      given: Values from the command line, without ranges.
      read: Function that returns the settings of arguments.

    Raises:
      ValueError: If `train` would reject one.
    """
    values = {grid.SEED: given.seeds, **given.values}
    count = math.prod(map(len, values.values()))
    if count > _MAX_RUNS:
      raise SettingError(
        '',
        f'The values must have at most {_MAX_RUNS:,} combinations, got '
        f'{count:,}.',
      )
    self._axes = [name for name, texts in values.items() if len(texts) > 1]
    self._asked = [
      (one, read(grid.to_arguments(one))) for one in grid.combine(values)
    ]
    self.settings = self._asked[0][1]
    self._runs: list[grid.SweepRun] = []

  def join(self, manifest: manifest_lib.SweepManifest) -> None:
    known = {grid.group_of(path) for path in manifest.codes}
    self._manifest = manifest
    self._runs = manifest_lib.join(manifest, self._asked, self._axes)
    self._new = [run for run in self._runs if run.group not in known]

  def describe(self) -> str:
    groups = {run.group for run in self._runs}
    return f'{_count(self._runs, "run")}, {_count(groups, "combination")}'

  def untried(self) -> list[grid.SweepRun]:
    first_of: dict[str, grid.SweepRun] = {}
    for run in self._new:
      first_of.setdefault(run.group, run)
    return list(first_of.values())

  def open(self) -> 'Queue':
    return Queue(run for run in self._runs if not self._manifest.is_done(run))

  def num_done(self) -> int:
    return sum(map(self._manifest.is_done, self._runs))

  def max_steps(self, run: grid.SweepRun) -> int:
    return _max_steps(run, self.settings)

  def conclude(self) -> list[str]:
    return []


class Queue:
  """Source that yields given runs in order."""

  def __init__(self, runs: Iterable[grid.SweepRun]):
    """Takes the runs that have not ended."""
    self._waiting = deque(runs)

  @property
  def num_to_come(self) -> int:
    return len(self._waiting)

  def next(self) -> grid.SweepRun | None:
    return self._waiting.popleft() if self._waiting else None

  def unwanted(
    self, running: Collection[grid.SweepRun]
  ) -> Collection[grid.SweepRun]:
    del running
    return ()

  def end(self, ended: pool.FinishedRun) -> None:
    del ended


class StudyPlan:
  """Plan of a hyperparameter search."""

  retries = False

  def __init__(
    self,
    given: values_lib.Given,
    read: Read,
    num_trials: int,
    seed: int,
    objective: str,
    prunes: bool,
  ):
    """Reads the choices, and the ends of each range.

    Args:
      given: Values and ranges from the command line.
      read: Function that returns the settings of arguments.
      num_trials: Total number of trials.
      seed: Seed of the choices.
      objective: One of `smoke_test.OBJECTIVES`.
      prunes: Whether to prune trials that fall behind.

    Raises:
      ValueError: If `train` would reject a choice, or there is nothing to
        choose.
    """
    _import_study()
    self._seeds = given.seeds
    self._choices = {
      name: texts for name, texts in given.values.items() if len(texts) > 1
    }
    self._ranges = given.ranges
    if not self._choices and not self._ranges:
      raise SettingError(
        'study',
        'must have a setting with a range or several values to choose from.',
      )
    self._fixed = {
      name: texts[0] for name, texts in given.values.items() if len(texts) == 1
    }
    self._num_trials = num_trials
    self._study = None
    self._seed = seed
    self._objective = objective
    self._prunes = prunes
    self._probes = self._list_probes()
    others = [{**self._probes[0], grid.SEED: one} for one in self._seeds[1:]]
    self.settings, *_ = (
      read(grid.to_arguments(one)) for one in (*self._probes, *others)
    )

  def _list_probes(self) -> list[grid.Combination]:
    """Returns a combination, and variants with another value of one setting."""
    ends = {
      **self._choices,
      **{n: (str(one.low), str(one.high)) for n, one in self._ranges.items()},
    }
    first = {name: texts[0] for name, texts in ends.items()}
    first = {**self._fixed, **first, grid.SEED: self._seeds[0]}
    others = [
      {**first, name: text}
      for name, texts in ends.items()
      for text in texts[1:]
    ]
    return [first, *others]

  def join(self, manifest: manifest_lib.SweepManifest) -> None:
    self._manifest = manifest
    self._is_new = not manifest.codes
    manifest_lib.join_study(
      manifest,
      {
        **self.settings,
        **{name: list(texts) for name, texts in self._choices.items()},
        **{name: one.text for name, one in self._ranges.items()},
        grid.SEED: list(self._seeds),
        'objective': self._objective,
        'study_seed': self._seed,
      },
    )

  def describe(self) -> str:
    numbers = range(self._num_trials)
    return f'{_count(numbers, "trial")} of {_count(self._seeds, "seed")}'

  def untried(self) -> list[grid.SweepRun]:
    if not self._is_new:
      return []
    return [grid.make_run('trial_0', one) for one in self._probes]

  def open(self) -> pool.RunSource:
    self._study = _import_study().Study(
      self._manifest.directory,
      {**self._choices, **self._ranges},
      self._seed,
    )
    return trials.Trials(
      self._study,
      self._manifest,
      self._fixed,
      self._seeds,
      self._num_trials,
      self._objective,
      self._prunes,
    )

  def num_done(self) -> int:
    return sum(code == 0 for code in self._manifest.codes.values())

  def max_steps(self, run: grid.SweepRun) -> int:
    return _max_steps(run, self.settings)

  def conclude(self) -> list[str]:
    best = self._study.best() if self._study is not None else None
    if best is None:
      return ['No trial has a value yet.']
    trial, value = best
    return [
      f'Best: trial_{trial.number}, {self._objective} return {value:.4g}: '
      + ' '.join(grid.to_arguments(trial.chosen))
    ]


def _import_study():
  """Imports the module that needs Optuna.

  Raises:
    SettingError: Without Optuna.
  """
  try:
    return sweeps.study
  except ImportError as error:
    if error.name != 'optuna':
      raise
    raise SettingError(
      'study', "needs the package optuna: pip install 'repertory[study]'."
    ) from error


def _max_steps(run: grid.SweepRun, settings: Mapping[str, Any]) -> int:
  """Returns a run's steps: its own, or else the common setting."""
  typed = [text for text in run.arguments if text.startswith('--steps=')]
  return int(typed[0].partition('=')[2] if typed else settings['steps'])


def _count(things: Sized, what: str) -> str:
  return f'{len(things)} {what}{"s" if len(things) != 1 else ""}'
