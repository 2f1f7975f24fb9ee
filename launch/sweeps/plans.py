"""What a sweep is to run: a grid of combinations, or the trials of a study."""

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

from repertory.components.settings import SettingError
from repertory.launch import sweeps
from repertory.launch.sweeps import grid, pool, trials
from repertory.launch.sweeps import manifest as manifest_lib
from repertory.launch.sweeps import values as values_lib

# Returns what arguments of `train` mean, or raises ValueError.
Read = Callable[[Sequence[str]], Mapping[str, Any]]
# More are rather a slip than a plan.
_MAX_RUNS = 10_000
OBJECTIVES = trials.OBJECTIVES


class Plan(Protocol):
  """What a sweep is to run.

  Attributes:
    settings: Those of one of its runs.
    retries: Whether runs that failed are run again the next time.
  """

  settings: Mapping[str, Any]
  retries: bool

  def join(self, manifest: manifest_lib.Manifest) -> None:
    """Adds it to what there is, in memory; raises SettingError if refused."""
    ...

  def describe(self) -> str:
    """Says what it is, in a few words."""
    ...

  def untried(self) -> list[grid.Run]:
    """Returns runs that are to be tried before anything starts.

    Those of what has never begun; `join` comes first.
    """
    ...

  def open(self) -> pool.Source:
    """Returns what gives the runs; from now on the directory is written to."""
    ...

  def num_done(self) -> int:
    """Returns how many of its runs have ended well."""
    ...

  def max_steps(self, run: grid.Run) -> int:
    """Returns the environment steps at which one of its runs ends."""
    ...

  def conclude(self) -> list[str]:
    """Returns, in lines, what is to be said at the end."""
    ...


class GridPlan:
  """All combinations of values."""

  retries = True

  def __init__(self, given: values_lib.Given, read: Read):
    """Reads all of them.

    Args:
      given: What was typed, no ranges.
      read: Says what it means.

    Raises:
      ValueError: If `train` would refuse one.
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
    self._runs: list[grid.Run] = []

  def join(self, manifest: manifest_lib.Manifest) -> None:
    known = {grid.group_of(path) for path in manifest.codes}
    self._manifest = manifest
    self._runs = manifest_lib.join(manifest, self._asked, self._axes)
    self._new = [run for run in self._runs if run.group not in known]

  def describe(self) -> str:
    groups = {run.group for run in self._runs}
    return f'{_count(self._runs, "run")}, {_count(groups, "combination")}'

  def untried(self) -> list[grid.Run]:
    first_of: dict[str, grid.Run] = {}
    for run in self._new:
      first_of.setdefault(run.group, run)
    return list(first_of.values())

  def open(self) -> 'Queue':
    return Queue(run for run in self._runs if not self._manifest.is_done(run))

  def num_done(self) -> int:
    return sum(map(self._manifest.is_done, self._runs))

  def max_steps(self, run: grid.Run) -> int:
    return _max_steps(run, self.settings)

  def conclude(self) -> list[str]:
    return []


class Queue:
  """Gives runs one after another."""

  def __init__(self, runs: Iterable[grid.Run]):
    """Takes the runs that have not ended."""
    self._waiting = deque(runs)

  @property
  def num_to_come(self) -> int:
    return len(self._waiting)

  def next(self) -> grid.Run | None:
    return self._waiting.popleft() if self._waiting else None

  def unwanted(self, running: Collection[grid.Run]) -> Collection[grid.Run]:
    del running
    return ()

  def end(self, ended: pool.Ended) -> None:
    del ended


class StudyPlan:
  """Trials of what a study chooses."""

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
    """Reads what can be chosen, each range at its ends.

    Args:
      given: What was typed.
      read: Says what it means.
      num_trials: How many there are to be.
      seed: Seeds what is chosen.
      objective: What is sought, one of `trials.OBJECTIVES`.
      prunes: Whether trials that fall behind are ended early.

    Raises:
      ValueError: If `train` would refuse it, or there is nothing to choose.
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
        'needs a setting with a range or with several values to choose from.',
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
    """Returns a combination, and others with another end or value of one."""
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

  def join(self, manifest: manifest_lib.Manifest) -> None:
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

  def untried(self) -> list[grid.Run]:
    if not self._is_new:
      return []
    return [grid.make_run('trial_0', one) for one in self._probes]

  def open(self) -> pool.Source:
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

  def max_steps(self, run: grid.Run) -> int:
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
  """Returns the module that needs Optuna.

  Raises:
    SettingError: Without Optuna, saying how to install it.
  """
  try:
    return sweeps.study
  except ImportError as error:
    if error.name != 'optuna':
      raise
    raise SettingError(
      'study', "needs the package optuna: pip install 'repertory[study]'."
    ) from error


def _max_steps(run: grid.Run, settings: Mapping[str, Any]) -> int:
  """Returns a run's steps: what was typed, or else what all have."""
  typed = [text for text in run.arguments if text.startswith('--steps=')]
  return int(typed[0].partition('=')[2] if typed else settings['steps'])


def _count(things: Sized, what: str) -> str:
  return f'{len(things)} {what}{"s" if len(things) != 1 else ""}'
