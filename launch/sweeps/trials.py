"""Runs of a study's trials, one for each seed."""

import dataclasses
import os
import statistics
import time
from collections import deque
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from repertory.launch import results
from repertory.launch.opening import directories
from repertory.launch.sweeps import grid, pool
from repertory.launch.sweeps import manifest as manifest_lib

if TYPE_CHECKING:  # Optuna is an extra.
  from repertory.launch.sweeps import study as study_lib

# Objective functions of the mean returns of a run's evaluations.
OBJECTIVES = {'last': lambda returns: returns[-1], 'best': max}

_LOOK_SECONDS = 1.0


@dataclasses.dataclass
class _Open:
  """An unfinished trial.

  Attributes:
    runs: Runs, one for each seed.
    left: Unfinished runs.
    has_failed: Whether a run failed.
    is_pruned: Whether the trial was pruned.
    num_reported: Number of reported evaluations.
  """

  runs: Sequence[grid.SweepRun]
  left: set[grid.SweepRun]
  has_failed: bool = False
  is_pruned: bool = False
  num_reported: int = 0


class Trials:
  """Source of the runs of a study's trials, which reports their values.

  The value is the mean over a trial's seeds. If one fails, the trial fails.
  """

  def __init__(
    self,
    study: 'study_lib.Study',
    manifest: manifest_lib.SweepManifest,
    given: grid.Combination,
    seeds: Sequence[str],
    num_trials: int,
    objective: str = 'last',
    prunes: bool = False,
  ):
    """Resumes unfinished trials.

    Args:
      study: Study that chooses settings.
      manifest: Manifest of the sweep, to which trials are added.
      given: Values of the settings that the study does not choose.
      seeds: Seeds of each trial.
      num_trials: Total number of trials, earlier ones included.
      objective: One of `OBJECTIVES`.
      prunes: Whether to prune trials that are worse than the median of earlier
        ones at the same number of evaluations.
    """
    self._study = study
    self._manifest = manifest
    self._given = given
    self._seeds = seeds
    self._num_trials = num_trials
    self._objective = OBJECTIVES[objective]
    self._prunes = prunes
    self._open: dict[int, _Open] = {}
    self._waiting: deque[grid.SweepRun] = deque()
    self._looked_at = 0.0
    for trial in study.open_trials():
      self._begin(trial)

  @property
  def num_to_come(self) -> int:
    """Number of runs that have not begun, including those of later trials."""
    trials = max(0, self._num_trials - self._study.num_trials)
    return len(self._waiting) + trials * len(self._seeds)

  def next(self) -> grid.SweepRun | None:
    while not self._waiting:
      if self._study.num_trials >= self._num_trials:
        return None
      self._begin(self._study.ask())
    return self._waiting.popleft()

  def end(self, ended: pool.FinishedRun) -> None:
    number = _number(ended.run)
    trial = self._open[number]
    if ended.was_stopped and ended.code != 0 and not trial.is_pruned:
      return  # It resumes when the study does.
    trial.left.discard(ended.run)
    trial.has_failed |= ended.code != 0 and not ended.was_stopped
    self._finish_if_over(number)

  def unwanted(
    self, running: Collection[grid.SweepRun]
  ) -> Collection[grid.SweepRun]:
    """Prunes trials; returns the running ones of pruned trials."""
    now = time.monotonic()
    if self._prunes and now - self._looked_at >= _LOOK_SECONDS:
      self._looked_at = now
      for number, trial in list(self._open.items()):
        if not trial.is_pruned and not self._should_continue(number, trial):
          self._prune(number, trial)
    pruned = {number for number, one in self._open.items() if one.is_pruned}
    return [run for run in running if _number(run) in pruned]

  def _begin(self, trial: 'study_lib.Trial') -> None:
    group = f'trial_{trial.number}'
    runs = [
      grid.make_run(group, {**self._given, **trial.chosen, grid.SEED: seed})
      for seed in self._seeds
    ]
    self._manifest.groups[group] = dict(trial.chosen)
    self._manifest.codes = {
      **self._manifest.codes,
      **{r.path: self._manifest.codes.get(r.path) for r in runs},
    }
    left = [run for run in runs if not self._manifest.is_done(run)]
    self._open[trial.number] = _Open(runs, set(left))
    self._waiting += left
    self._finish_if_over(trial.number)

  def _finish_if_over(self, number: int) -> None:
    trial = self._open[number]
    if trial.left:
      return
    del self._open[number]
    if trial.is_pruned:
      self._study.prune(number)
      return
    returns = [self._returns(run) for run in trial.runs]
    is_valid = not trial.has_failed and all(returns)
    self._study.record(
      number,
      statistics.fmean(map(self._objective, returns)) if is_valid else None,
    )

  def _should_continue(self, number: int, trial: _Open) -> bool:
    """Reports means over seeds to the study; returns whether to continue."""
    returns = [self._returns(run) for run in trial.runs]
    for count in range(trial.num_reported + 1, min(map(len, returns)) + 1):
      trial.num_reported = count
      so_far = [self._objective(one[:count]) for one in returns]
      if not self._study.report(number, count - 1, statistics.fmean(so_far)):
        return False
    return True

  def _prune(self, number: int, trial: _Open) -> None:
    trial.is_pruned = True
    waiting = [run for run in self._waiting if _number(run) == number]
    for run in waiting:
      self._waiting.remove(run)
      trial.left.discard(run)
    self._finish_if_over(number)

  def _returns(self, run: grid.SweepRun) -> list[float]:
    """Returns the mean returns of a run's evaluations so far."""
    folder = os.path.join(self._manifest.directory, run.path, directories.LOGS)
    logs = results.logs.Logs(folder)
    return logs.column('evaluator', 'episode_return').tolist()


def _number(run: grid.SweepRun) -> int:
  return int(run.group.removeprefix('trial_'))
