"""What the trials of a study try, as Optuna chooses it."""

import dataclasses
import math
import os
import warnings
from collections.abc import Mapping

import numpy as np
import optuna
from optuna import distributions, trial

from repertory.components.settings import SettingError
from repertory.launch.sweeps import values as values_lib

FILE = 'study.db'
_NAME = 'sweep'
# What has a meaning of its own in the URL of a storage.
_NOT_IN_URLS = '?#%{}'

# By name of a setting, which is as on the command line.
Space = Mapping[str, values_lib.Values | values_lib.Range]


@dataclasses.dataclass(frozen=True)
class Trial:
  """A trial.

  Attributes:
    number: From 0 on.
    chosen: What to type for each setting of the space.
  """

  number: int
  chosen: Mapping[str, str]


class Study:
  """A search for the settings with the highest value, in a file.

  What it chooses follows from the seed, the number of the trial, and what it
  has been told by then; so a study that is resumed does not try the same twice.
  """

  def __init__(self, directory: str, space: Space, seed: int):
    """Opens a study, or makes a new one.

    Args:
      directory: Where its file is.
      space: What to choose from.
      seed: Seeds what it chooses.

    Raises:
      SettingError: If there can be no file of that name.
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
    # Else it prints a line for each trial.
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
        else:  # It was killed while it chose, or chose from something else.
          self._study.tell(found.number, state=trial.TrialState.FAIL)

  @property
  def num_trials(self) -> int:
    """Trials so far, however they ended."""
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
      # Not to try what runs already is an experimental option.
      warnings.simplefilter('ignore', optuna.exceptions.ExperimentalWarning)
      self._study.sampler = optuna.samplers.TPESampler(
        seed=_mix(self._seed, number), constant_liar=True
      )
    begun = self._study.ask(dict(self._space))
    self._open[begun.number] = begun
    return _describe(begun)

  def tell(self, number: int, value: float | None) -> None:
    """Ends a trial.

    Args:
      value: How good it was; None, or what is not finite, if it failed.
    """
    del self._open[number]
    if value is None or not math.isfinite(value):
      self._study.tell(number, state=trial.TrialState.FAIL)
    else:
      self._study.tell(number, value)

  def report(self, number: int, index: int, value: float) -> bool:
    """Takes how good a trial is so far; returns whether to go on with it.

    Args:
      index: Counts what is reported of a trial.
    """
    one = self._open[number]
    done = self._study.trials[number].intermediate_values
    if index not in done and math.isfinite(value):
      one.report(value, index)
    return not one.should_prune()

  def prune(self, number: int) -> None:
    """Ends a trial that is not worth going on with."""
    del self._open[number]
    self._study.tell(number, state=trial.TrialState.PRUNED)

  def best(self) -> tuple[Trial, float] | None:
    """Returns the best trial and its value; None if none has one."""
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
  """Returns a seed for each trial; near ones would draw near numbers first."""
  return int(np.random.SeedSequence([seed, number]).generate_state(1)[0])
