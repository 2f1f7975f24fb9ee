"""Plans of sweeps: a grid of combinations, or the trials of a study."""

import math
import os
from collections import deque
from collections.abc import (
  Callable,
  Collection,
  Iterable,
  Mapping,
  Sequence,
  Sized,
)
from typing import Any

from repertory.components.config.settings import SettingError
from repertory.launch import sweeps
from repertory.launch.sweeps import grid, pool
from repertory.launch.sweeps import manifest as manifest_lib
from repertory.launch.sweeps import values as values_lib

# Function from arguments of `train` to settings, which may raise ValueError.
Read = Callable[[Sequence[str]], Mapping[str, Any]]
_MAX_RUNS = 10_000  # More are probably a mistake.

OBJECTIVES = ('last', 'best')


class SweepPlan:
  """Plan of a sweep.

  Attributes:
    settings: Settings of one of its runs.
    retries: Whether failed runs are repeated the next time.
  """

  settings: Mapping[str, Any]
  retries = True

  def join(self, manifest: manifest_lib.SweepManifest) -> None:
    """Adds its runs to a manifest, in memory; raises SettingError if unfit."""
    raise NotImplementedError

  def describe(self) -> str:
    """Describes the plan in a few words."""
    raise NotImplementedError

  def untried(self) -> Sequence[grid.SweepRun]:
    """Returns runs for smoke tests before anything starts.

    They represent combinations that have never begun. Call `join` first.
    """
    raise NotImplementedError

  def num_done(self) -> int:
    """Returns the number of its runs that succeeded."""
    raise NotImplementedError

  def open(self) -> pool.RunSource:
    """Returns the source of its runs, which may write to the directory."""
    raise NotImplementedError

  def conclude(self) -> list[str]:
    """Returns lines to print at the end."""
    return []

  def max_steps(self, run: grid.SweepRun) -> int:
    """Returns the total environment steps of one of its runs."""
    typed = [text for text in run.arguments if text.startswith('--steps=')]
    return int(typed[0].partition('=')[2] if typed else self.settings['steps'])


class GridPlan(SweepPlan):
  """Plan of a grid: all combinations of values."""

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

  def join(self, manifest: manifest_lib.SweepManifest) -> None:
    known = set(map(os.path.dirname, manifest.codes))
    self._manifest = manifest
    self._runs = manifest_lib.join(manifest, self._asked, self._axes)
    self._new = {r.group: r for r in self._runs[::-1] if r.group not in known}

  def describe(self) -> str:
    groups = {run.group for run in self._runs}
    return f'{_count(self._runs, "run")}, {_count(groups, "combination")}'

  def untried(self) -> Sequence[grid.SweepRun]:
    return [*self._new.values()][::-1]

  def num_done(self) -> int:
    return sum(map(self._manifest.is_done, self._runs))

  def open(self) -> 'Queue':
    return Queue(run for run in self._runs if not self._manifest.is_done(run))


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

  def unwanted(self) -> Collection[grid.SweepRun]:
    return ()

  def end(self, ended: pool.FinishedRun) -> None:
    pass


class StudyPlan(SweepPlan):
  """Plan of a hyperparameter search, see `study.Study`."""

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
      objective: One of `OBJECTIVES`.
      prunes: Whether to prune trials that fall behind.

    Raises:
      ValueError: If `train` would reject a choice, or there is nothing to
        choose.
    """
    try:
      self._study_class = sweeps.study.Study
    except ImportError as error:
      if error.name != 'optuna':
        raise
      raise SettingError(
        'study', "needs the package optuna: pip install 'repertory[study]'."
      ) from error
    choices = {n: texts for n, texts in given.values.items() if len(texts) > 1}
    self._space = {**choices, **given.ranges}
    if not self._space:
      raise SettingError(
        'study',
        'must have a setting with a range or several values to choose from.',
      )
    self._fixed = {
      name: texts[0] for name, texts in given.values.items() if len(texts) == 1
    }
    self._seeds = given.seeds
    self._num_trials = num_trials
    self._objective = objective
    self._seed = seed
    self._prunes = prunes
    self._study = None
    # A combination, and variants with another value of one setting.
    ends = {
      **choices,
      **{n: (str(one.low), str(one.high)) for n, one in given.ranges.items()},
      grid.SEED: self._seeds,
    }
    first = {**self._fixed, **{name: texts[0] for name, texts in ends.items()}}
    self._probes = [first] + [
      {**first, name: text}
      for name, texts in ends.items()
      for text in texts[1:]
    ]
    self.settings, *_ = (read(grid.to_arguments(one)) for one in self._probes)

  def join(self, manifest: manifest_lib.SweepManifest) -> None:
    self._manifest = manifest
    space = {
      name: one.text if isinstance(one, values_lib.Range) else list(one)
      for name, one in self._space.items()
    }
    manifest_lib.join_study(
      manifest,
      {
        **self.settings,
        **space,
        grid.SEED: list(self._seeds),
        'objective': self._objective,
        'study_seed': self._seed,
      },
    )

  def describe(self) -> str:
    numbers = range(self._num_trials)
    return f'{_count(numbers, "trial")} of {_count(self._seeds, "seed")}'

  def untried(self) -> Sequence[grid.SweepRun]:
    if self._manifest.codes:
      return []
    return [
      grid.make_run('trial_0', one)
      for one in self._probes
      if one[grid.SEED] == self._seeds[0]
    ]

  def num_done(self) -> int:
    return sum(code == 0 for code in self._manifest.codes.values())

  def open(self) -> pool.RunSource:
    self._study = self._study_class(
      self._manifest,
      self._space,
      self._fixed,
      self._seeds,
      self._num_trials,
      self._seed,
      self._objective,
      self._prunes,
    )
    return self._study

  def conclude(self) -> list[str]:
    best = self._study.best() if self._study is not None else None
    if best is None:
      return ['No trial has a value yet.']
    number, chosen, value = best
    return [
      f'Best: trial_{number}, {self._objective} return {value:.4g}: '
      + ' '.join(grid.to_arguments(chosen))
    ]


def _count(things: Sized, what: str) -> str:
  return f'{len(things)} {what}{"s" if len(things) != 1 else ""}'
