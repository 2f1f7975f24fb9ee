"""Tasks of the DeepMind Control Suite."""

from collections.abc import Mapping
from typing import Any

import dm_env
from dm_env import specs

from repertory.environments import close_names, extras, name_options, seeds
from repertory.environments.wrappers import (
  environment_wrapper,
  single_precision,
)

OPTIONS = (
  name_options.Option(
    'nested', False, 'Whether observations are named parts, not one vector'
  ),
)

# What the suite calls the vector.
_FLAT = 'observations'


def tasks() -> list[str]:
  """Returns the names of all tasks, such as 'cartpole/swingup'.

  Raises:
    ImportError: If dm_control is not installed.
  """
  suite = extras.import_extra('dm_control.suite', 'dm-control')
  return sorted(f'{domain}/{task}' for domain, task in suite.ALL_TASKS)


def make(
  task: str, settings: Mapping[str, Any], seed: int
) -> dm_env.Environment:
  """Makes a task, with states rather than pictures as observations.

  The suite's episodes end after a fixed time only, with discount 1; a few tasks
  terminate as well, with discount 0.

  Args:
    task: See `tasks`.
    settings: A value for each of `OPTIONS`.
    seed: At least 0.

  Returns:
    An environment of single precision.

  Raises:
    ImportError: If dm_control is not installed.
    ValueError: If there is no such task, or if the seed is not valid.
  """
  close_names.check('task', task, tasks())
  suite = extras.import_extra('dm_control.suite', 'dm-control')
  flat = not settings['nested']
  environment = suite.load(
    *task.split('/'),
    task_kwargs={'random': seeds.fold(seed)},
    environment_kwargs={'flat_observation': flat},
  )
  if flat:
    environment = _Vector(environment)
  return single_precision.SinglePrecision(environment)


class _Vector(environment_wrapper.EnvironmentWrapper):
  """Takes the vector out of the dictionary that holds nothing else."""

  def reset(self) -> dm_env.TimeStep:
    return _unwrap(self._environment.reset())

  def step(self, action: Any) -> dm_env.TimeStep:
    return _unwrap(self._environment.step(action))

  def observation_spec(self) -> specs.Array:
    return self._environment.observation_spec()[_FLAT]


def _unwrap(timestep: dm_env.TimeStep) -> dm_env.TimeStep:
  step_type, reward, discount, observation = timestep
  return dm_env.TimeStep(step_type, reward, discount, observation[_FLAT])
