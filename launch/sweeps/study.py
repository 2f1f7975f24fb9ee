"""Hyperparameter search with Optuna."""

import dataclasses
import os
import statistics
import time
import warnings
from collections import deque
from collections.abc import Collection, Mapping, Sequence

import numpy as np
import optuna
from optuna import distributions
from optuna.storages import journal

from repertory.components.config.settings import SettingError
from repertory.launch import results
from repertory.launch.experiments import directories
from repertory.launch.sweeps import manifest as manifest_lib
from repertory.launch.sweeps import plans
from repertory.launch.sweeps import values as values_lib

NAME = 'sweep'

_LOOK_SECONDS = 1.0


@dataclasses.dataclass
class _Open:
  """An unfinished trial, its runs, and those of them that have not ended."""

  trial: optuna.trial.Trial
  runs: Sequence[manifest_lib.SweepRun]
  left: set[manifest_lib.SweepRun]
  num_reported: int
  has_failed: bool = False
  is_pruned: bool = False


class StudyPlan(plans.SweepPlan):
  """Plan of a hyperparameter search, whose trials are stored in a journal.

  A trial has a run for each seed, and its value is the mean over them of the
  last evaluation. If one fails, the trial fails. Choices follow from the seed
  of the study, the number of the trial, and the results so far, so a resumed
  study does not repeat trials.
  """

  def __init__(
    self,
    given: values_lib.Given,
    read: plans.Read,
    num_trials: int,
    seed: int = 0,
    prunes: bool = False,
  ):
    """Reads the choices, and the ends of each range, as `train` would."""
    super().__init__()
    # Values before ranges, in which order samplers draw.
    given = dict(sorted(given.items(), key=lambda item: _is_range(item[1])))
    self._seeds = given.pop(manifest_lib.SEED)
    self._given = {n: v for n, v in given.items() if _is_range(v) or len(v) > 1}
    self._fixed = {n: v[0] for n, v in given.items() if n not in self._given}
    if not self._given:
      raise SettingError(
        'study',
        'must have a setting with a range or several values to choose from.',
      )
    self._space = {name: _distribution(v) for name, v in self._given.items()}
    self._num_trials = num_trials
    self._seed = seed
    self._prunes = prunes
    self._study: optuna.Study  # Once it is open.
    self._open: dict[int, _Open] = {}
    self._looked_at = 0.0
    # A combination, and variants with another value of one setting.
    ends = {
      name: (str(one.low), str(one.high)) if _is_range(one) else one
      for name, one in {**self._given, manifest_lib.SEED: self._seeds}.items()
    }
    first = {**self._fixed, **{name: texts[0] for name, texts in ends.items()}}
    self._probes = [first] + [
      {**first, name: text}
      for name, texts in ends.items()
      for text in texts[1:]
    ]
    self.settings, *_ = (
      read(manifest_lib.to_arguments(one)) for one in self._probes
    )

  def join(self, manifest: manifest_lib.SweepManifest) -> None:
    self._manifest = manifest
    manifest.add_study(
      {
        **self.settings,
        **{
          name: one.text if _is_range(one) else [*one]
          for name, one in self._given.items()
        },
        manifest_lib.SEED: [*self._seeds],
        'objective': 'last',  # Earlier versions had others.
        'study_seed': self._seed,
      },
    )
    trials = plans.count(range(self._num_trials), 'trial')
    self.description = f'{trials} of {plans.count(self._seeds, "seed")}'
    self.untried = [
      manifest_lib.make_run('trial_0', one)
      for one in self._probes
      if one[manifest_lib.SEED] == self._seeds[0] and not manifest.codes
    ]

  def num_done(self) -> int:
    return list(self._manifest.codes.values()).count(0)

  def open(self) -> None:
    """Opens the study, or makes a new one; resumes unfinished trials."""
    self._study = _open_journal(self._manifest)
    for found in self._study.get_trials():
      if found.state != optuna.trial.TrialState.RUNNING:
        continue
      if found.distributions == self._space:
        self._begin(optuna.trial.Trial(self._study, found._trial_id))
      else:  # Killed while choosing, or chosen from another space.
        self._study.tell(found.number, state=optuna.trial.TrialState.FAIL)

  def next(self) -> manifest_lib.SweepRun | None:
    while not self._waiting and len(self._manifest.groups) < self._num_trials:
      # Mixed, as similar seeds start alike.
      number = len(self._study.get_trials(deepcopy=False))
      mixed = np.random.SeedSequence([self._seed, number])
      with warnings.catch_warnings():
        # `constant_liar`, which avoids running trials, is experimental.
        warnings.simplefilter('ignore', optuna.exceptions.ExperimentalWarning)
        self._study.sampler = optuna.samplers.TPESampler(
          seed=int(mixed.generate_state(1)[0]), constant_liar=True
        )
      self._begin(self._study.ask(dict(self._space)))
    return super().next()

  def end(self, ended: manifest_lib.FinishedRun) -> None:
    number = int(ended.run.group.removeprefix('trial_'))
    one = self._open[number]
    if ended.was_stopped and ended.code != 0 and not one.is_pruned:
      return  # It resumes when the study does.
    one.left.discard(ended.run)
    one.has_failed |= ended.code != 0 and not ended.was_stopped
    self._finish_if_over(number)

  def unwanted(self) -> Collection[manifest_lib.SweepRun]:
    """Prunes trials; returns the runs of pruned trials."""
    now = time.monotonic()
    if self._prunes and now - self._looked_at >= _LOOK_SECONDS:
      self._looked_at = now
      for number, one in list(self._open.items()):
        if not one.is_pruned and self._falls_behind(one):
          one.is_pruned = True
          one.left -= {*self._waiting}
          self._waiting = deque(
            run for run in self._waiting if run not in one.runs
          )
          self._finish_if_over(number)
    pruned = [one for one in self._open.values() if one.is_pruned]
    return [run for one in pruned for run in one.runs]

  def conclude(self) -> str:
    try:
      best = self._study.best_trial
    except ValueError:
      return 'No trial has a value yet.'
    return (
      f'Best: trial_{best.number}, last return {self._study.best_value:.4g}: '
      + ' '.join(manifest_lib.to_arguments(_choices(best.params)))
    )

  def _begin(self, trial: optuna.trial.Trial) -> None:
    group, chosen = f'trial_{trial.number}', _choices(trial.params)
    runs = [
      manifest_lib.make_run(
        group, {**self._fixed, **chosen, manifest_lib.SEED: seed}
      )
      for seed in self._seeds
    ]
    self._manifest.groups[group] = chosen
    for run in runs:
      self._manifest.codes.setdefault(run.path, None)
    left = [run for run in runs if not self._manifest.is_done(run)]
    reported = self._study.trials[trial.number].intermediate_values
    one = _Open(trial, runs, set(left), num_reported=len(reported))
    self._open[trial.number] = one
    self._waiting += left
    self._finish_if_over(trial.number)

  def _finish_if_over(self, number: int) -> None:
    one = self._open[number]
    if one.left:
      return
    del self._open[number]
    returns = [self._returns(run) for run in one.runs]
    if one.is_pruned:
      self._study.tell(number, state=optuna.trial.TrialState.PRUNED)
    elif one.has_failed or not all(returns):
      self._study.tell(number, state=optuna.trial.TrialState.FAIL)
    else:
      self._study.tell(number, statistics.fmean(own[-1] for own in returns))

  def _falls_behind(self, one: _Open) -> bool:
    """Reports means over seeds to the study; returns whether to prune."""
    means = [*map(statistics.fmean, zip(*map(self._returns, one.runs)))]
    for step in range(one.num_reported, len(means)):
      one.num_reported = step + 1
      one.trial.report(means[step], step)
      if one.trial.should_prune():
        return True
    return False

  def _returns(self, run: manifest_lib.SweepRun) -> list[float]:
    """Returns the finite mean returns of a run's evaluations so far."""
    folder = os.path.join(self._manifest.directory, run.path, directories.LOGS)
    found = results.logs.Logs(folder).column('evaluator', 'episode_return')
    return found[np.isfinite(found)].tolist()


def _open_journal(manifest: manifest_lib.SweepManifest) -> optuna.Study:
  path = os.path.join(manifest.directory, manifest_lib.STUDY_FILE)
  if manifest.groups and not os.path.exists(path):
    raise SettingError(
      'directory',
      f'must have the file {manifest_lib.STUDY_FILE} of its study, got '
      f'{manifest.directory}. Restore it, or choose another directory.',
    )
  # Otherwise Optuna prints a line for each trial.
  optuna.logging.set_verbosity(optuna.logging.WARNING)
  return optuna.create_study(
    storage=optuna.storages.JournalStorage(journal.JournalFileBackend(path)),
    study_name=NAME,
    direction='maximize',
    pruner=optuna.pruners.MedianPruner(),
    load_if_exists=True,
  )


def _is_range(one: object) -> bool:
  return isinstance(one, values_lib.Range)


def _distribution(
  one: values_lib.Values | values_lib.Range,
) -> distributions.BaseDistribution:
  if not isinstance(one, values_lib.Range):
    return distributions.CategoricalDistribution(one)
  if isinstance(one.low, int) and isinstance(one.high, int):
    return distributions.IntDistribution(one.low, one.high, log=one.is_log)
  return distributions.FloatDistribution(one.low, one.high, log=one.is_log)


def _choices(params: Mapping[str, object]) -> dict[str, str]:
  return {name: str(value) for name, value in params.items()}
