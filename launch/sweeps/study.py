"""Hyperparameter search with Optuna."""

import dataclasses
import math
import os
import warnings
from collections.abc import Mapping

import numpy as np
import optuna
from optuna import distributions, trial

from repertory.components.config.settings import SettingError
from repertory.launch.sweeps import values as values_lib

FILE = 'study.db'
_NAME = 'sweep'
# Characters with a special meaning in the URL of a storage.
_NOT_IN_URLS = '?#%{}'

# By name of a setting, as on the command line.
Space = Mapping[str, values_lib.Values | values_lib.Range]


@dataclasses.dataclass(frozen=True)
class Trial:
  """A trial of a study.

  Attributes:
    number: Number of the trial, from 0.
    chosen: Text of the chosen value of each setting.
  """

  number: int
  chosen: Mapping[str, str]


class Study:
  """A search for the settings with the highest value, stored in a file.

  Its choices follow from the seed, the number of the trial, and the results so
  far, so a resumed study does not repeat trials.
  """

  def __init__(self, directory: str, space: Space, seed: int):
    """Opens a study, or makes a new one.

    Args:
      directory: Folder of its file.
      space: Search space.
      seed: Seed of the choices.

    Raises:
      SettingError: If the path has characters that storage URLs do not allow.
    """
    path = os.path.abspath(os.path.join(directory, FILE))
    if any(character in path for character in _NOT_IN_URLS):
      raise SettingError(
        'directory',
        f'must have none of {_NOT_IN_URLS} in its path with --study, got '
        f'{path}.',
      )
    self._space = {name: _distribution(one) for name, one in space.items()}
    self._seed = seed
    # Otherwise Optuna prints a line for each trial.
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    self._study = optuna.create_study(
      storage=f'sqlite:///{path}',
      study_name=_NAME,
      direction='maximize',
      pruner=optuna.pruners.MedianPruner(),
      load_if_exists=True,
    )
    self._open: dict[int, trial.Trial] = {}
    for found in self._study.get_trials():
      if found.state == trial.TrialState.RUNNING:
        if found.distributions == self._space:
          self._open[found.number] = trial.Trial(self._study, found._trial_id)
        else:  # Killed while choosing, or chosen from another space.
          self._study.tell(found.number, state=trial.TrialState.FAIL)

  @property
  def num_trials(self) -> int:
    """Number of trials so far, whatever their outcome."""
    return sum(
      found.params.keys() == self._space.keys()
      for found in self._study.get_trials(deepcopy=False)
    )

  def open_trials(self) -> list[Trial]:
    """Returns the trials that have not ended."""
    return [_describe(one) for one in self._open.values()]

  def ask(self) -> Trial:
    """Begins a trial."""
    number = len(self._study.get_trials(deepcopy=False))
    with warnings.catch_warnings():
      # `constant_liar`, which avoids running trials, is experimental.
      warnings.simplefilter('ignore', optuna.exceptions.ExperimentalWarning)
      self._study.sampler = optuna.samplers.TPESampler(
        seed=_mix(self._seed, number), constant_liar=True
      )
    begun = self._study.ask(dict(self._space))
    self._open[begun.number] = begun
    return _describe(begun)

  def record(self, number: int, value: float | None) -> None:
    """Ends a trial.

    Args:
      value: Result to maximize; None or non-finite if the trial failed.
    """
    del self._open[number]
    if value is None or not math.isfinite(value):
      self._study.tell(number, state=trial.TrialState.FAIL)
    else:
      self._study.tell(number, value)

  def report(self, number: int, index: int, value: float) -> bool:
    """Reports an intermediate value; returns whether to continue the trial.

    Args:
      index: Index of the report within the trial.
    """
    one = self._open[number]
    done = self._study.trials[number].intermediate_values
    if index not in done and math.isfinite(value):
      one.report(value, index)
    return not one.should_prune()

  def prune(self, number: int) -> None:
    """Ends a trial early, as pruned."""
    del self._open[number]
    self._study.tell(number, state=trial.TrialState.PRUNED)

  def best(self) -> tuple[Trial, float] | None:
    """Returns the best trial and its value; None without values."""
    try:
      found = self._study.best_trial
    except ValueError:
      return None
    return _describe(found), self._study.best_value


def _distribution(
  one: values_lib.Values | values_lib.Range,
) -> distributions.BaseDistribution:
  if not isinstance(one, values_lib.Range):
    return distributions.CategoricalDistribution(one)
  if isinstance(one.low, int) and isinstance(one.high, int):
    return distributions.IntDistribution(one.low, one.high, log=one.is_log)
  return distributions.FloatDistribution(one.low, one.high, log=one.is_log)


def _describe(one: trial.Trial | trial.FrozenTrial) -> Trial:
  return Trial(
    one.number, {name: str(value) for name, value in one.params.items()}
  )


def _mix(seed: int, number: int) -> int:
  """Returns the seed of a trial, mixed, as similar seeds start alike."""
  return int(np.random.SeedSequence([seed, number]).generate_state(1)[0])
