"""Outcomes of goals for hindsight, from environments or functions of users."""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import tree

from repertory.components import adders, specs, types
from repertory.components.adders import hindsight
from repertory.components.config import import_paths
from repertory.components.config.settings import SettingError
from repertory.components.transports import experience as experience_lib
from repertory.launch.experiments import experiment as experiment_lib

_REWARD = 'hindsight_reward'


@dataclasses.dataclass(frozen=True)
class MakeOutcomes:
  """Makes the function of outcomes of goals, in any process.

  Attributes:
    environment_factory: Makes an environment of a seed.
    reward: Import path of a function of rewards; None for the methods
      `compute_reward` and, if there is one, `compute_terminated` of the
      environment, which take arrays `[N, ...]` as those of Gymnasium-Robotics.
  """

  environment_factory: Callable[[int], Any]
  reward: str | None = None

  def __call__(self) -> hindsight.GoalOutcomes:
    """Returns the function.

    Raises:
      SettingError: If the environment has no method for it.
    """
    if self.reward is not None:
      return hindsight.GoalOutcomes(self._from_path(self.reward))
    environment = self.environment_factory(0)
    compute_reward = getattr(environment, 'compute_reward', None)
    if compute_reward is None:
      environment.close()
      raise SettingError(
        _REWARD,
        'must be set, because the environment has no method compute_reward, '
        'got None. Set the import path of a function of achieved and desired '
        'goals.',
      )
    compute_terminated = getattr(environment, 'compute_terminated', None)

    def outcomes(achieved: types.Nest, desired: types.Nest):
      terminated = None
      if compute_terminated is not None:
        found = np.asarray(compute_terminated(achieved, desired, {}), bool)
        terminated = np.broadcast_to(found, [len(tree.flatten(achieved)[0])])
      return compute_reward(achieved, desired, {}), terminated

    return hindsight.GoalOutcomes(outcomes, environment.close)

  def _from_path(self, path: str) -> Callable:
    try:
      function = import_paths.find(path)
    except import_paths.ImportPathError as error:
      raise SettingError(
        _REWARD, f'must be module:function, got {path!r}, but {error}'
      ) from error
    return lambda achieved, desired: (function(achieved, desired), None)


def bind(
  experience: experience_lib.Experience,
  spec: specs.EnvironmentSpec,
  experiment: experiment_lib.Experiment,
) -> experience_lib.Experience:
  """Returns the experience of HER with the outcomes of goals.

  Raises:
    SettingError: If the function of outcomes is missing, or its results do not
      fit.
  """
  make = MakeOutcomes(
    experiment.environment_factory, experiment.builder.config.hindsight_reward
  )
  if not isinstance(experience.items, adders.HindsightTransitions):
    raise SettingError(
      'hindsight_goals',
      f'must be 0 for {type(experiment.builder).__name__}, whose items are '
      f'{type(experience.items).__name__}.',
    )
  goals = specs.zeros(spec.observations[hindsight.ACHIEVED], 3)
  outcomes = make()
  try:
    rewards, _ = outcomes.compute(goals, goals)
    found = f'shape {np.shape(rewards)} for 3 goals'
  except Exception as error:  # Of the user's function.
    rewards, found = (), f'{type(error).__name__}: {error}'
  finally:
    outcomes.close()
  if np.shape(rewards) != (3,):
    raise SettingError(
      _REWARD,
      'must be a function (achieved, desired) of arrays [N, ...] that returns '
      f'rewards [N]; {make.reward or "compute_reward of the environment"} gave '
      f'{found}.',
    )
  items: Any = experience.items
  items = dataclasses.replace(items, make_outcomes=make, seed=experiment.seed)
  return dataclasses.replace(experience, items=items)
