"""Hyperparameter search with Optuna."""

import os
import statistics
import warnings
from collections.abc import Mapping

import numpy as np

from repertory.components.config.settings import SettingError
from repertory.launch import results
from repertory.launch.experiments import directories
from repertory.launch.sweeps import manifest as manifest_lib
from repertory.launch.sweeps import plans
from repertory.launch.sweeps import values as values_lib

try:
  import optuna
  from optuna import distributions
  from optuna.storages import journal
except ImportError as error:
  raise SettingError(
    'study', "needs the package optuna: pip install 'repertory[study]'."
  ) from error

NAME = 'sweep'


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
    self._study: optuna.Study  # Once it is open.
    # A combination, and variants with another value of one setting.
    ends = {
      name: (str(one.low), str(one.high)) if _is_range(one) else one
      for name, one in {**self._given, manifest_lib.SEED: self._seeds}.items()
    }
    first = {**self._fixed, **{name: texts[0] for name, texts in ends.items()}}
    self.settings = read(manifest_lib.to_arguments(first))
    trials = plans.count(range(num_trials), 'trial')
    self.description = f'{trials} of {plans.count(self._seeds, "seed")}'
    self._probes = [first]
    for name, texts in ends.items():
      self._probes += ({**first, name: text} for text in texts[1:])
    for probe in self._probes[1:]:
      read(manifest_lib.to_arguments(probe))

  def untried(self, manifest):
    if manifest.codes:
      return []
    probes = self._probes[: 1 - len(self._seeds) or None]  # Of one seed.
    return [manifest_lib.make_run('trial_0', one) for one in probes]

  def open(self, manifest: manifest_lib.SweepManifest) -> None:
    """Opens the study, or makes a new one; resumes unfinished trials."""
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
    self.description += f'; done already: {len(manifest.done())}'
    self._manifest = manifest
    self._study = _open_journal(manifest)
    for found in self._study.get_trials():
      if found.state != optuna.trial.TrialState.RUNNING:
        continue
      if found.distributions == self._space:
        self._begin(found.number, found.params)
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
      trial = self._study.ask(dict(self._space))
      self._begin(trial.number, trial.params)
    return super().next()

  def end(self, run: manifest_lib.SweepRun) -> None:
    """Reports the value of a trial to the study once all its runs ended."""
    runs = [f'{run.group}/seed_{seed}' for seed in self._seeds]
    codes = [self._manifest.codes[path] for path in runs]
    if None in codes:  # It resumes when the study does.
      return
    number = int(run.group.removeprefix('trial_'))
    returns = [self._returns(path) for path in runs]
    if any(codes) or not all(returns):
      self._study.tell(number, state=optuna.trial.TrialState.FAIL)
    else:
      self._study.tell(number, statistics.fmean(own[-1] for own in returns))

  def conclude(self) -> list[str]:
    try:
      best = self._study.best_trial
    except ValueError:
      return ['No trial has a value yet.']
    return [
      f'Best: trial_{best.number}, last return {self._study.best_value:.4g}: '
      + ' '.join(manifest_lib.to_arguments(_choices(best.params)))
    ]

  def _begin(self, number: int, params: Mapping[str, object]) -> None:
    group, chosen = f'trial_{number}', _choices(params)
    self._manifest.groups[group] = chosen
    runs = [
      manifest_lib.make_run(
        group, {**self._fixed, **chosen, manifest_lib.SEED: seed}
      )
      for seed in self._seeds
    ]
    for run in runs:
      if self._manifest.codes.setdefault(run.path, None) is None:
        self._waiting.append(run)
    self.end(runs[0])  # It may have ended before.

  def _returns(self, path: str) -> list[float]:
    """Returns the finite mean returns of a run's evaluations."""
    folder = os.path.join(self._manifest.directory, path, directories.LOGS)
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
  try:
    return optuna.create_study(
      storage=optuna.storages.JournalStorage(journal.JournalFileBackend(path)),
      study_name=NAME,
      direction='maximize',
      load_if_exists=True,
    )
  except Exception as error:  # Broken content may raise anything.
    raise SettingError(
      'directory',
      f'must have a readable {manifest_lib.STUDY_FILE}, got {path}: '
      f'{type(error).__name__}: {error}. Restore it, or choose another '
      'directory.',
    ) from error


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
