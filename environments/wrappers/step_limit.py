"""Time limit of episodes."""

import dm_env

from repertory.environments.batches.layout import Nest
from repertory.environments.values import argument_checks
from repertory.environments.wrappers import environment_wrapper


class StepLimit(environment_wrapper.EnvironmentWrapper):
  """Truncates episodes after a number of steps: turns MID into LAST.

  The discount is unchanged, usually 1: the episode was not terminated, so
  learners bootstrap from its last observation.
  """

  def __init__(self, environment: dm_env.Environment, max_steps: int):
    """Wraps the environment.

    Args:
      environment: The environment.
      max_steps: Steps of an episode after its FIRST timestep, at least 1.

    Raises:
      ValueError: If `max_steps` is not an integer of at least 1.
    """
    super().__init__(environment)
    self._max_steps = argument_checks.check_integer('max_steps', max_steps, 1)
    self._num_steps = 0
    self._ended = True

  def reset(self) -> dm_env.TimeStep:
    timestep = self._environment.reset()
    self._num_steps = 0
    self._ended = False
    return timestep

  def step(self, action: Nest) -> dm_env.TimeStep:
    if self._ended:
      return self.reset()
    timestep = self._environment.step(action)
    self._num_steps += 1
    if timestep.mid() and self._num_steps >= self._max_steps:
      timestep = timestep._replace(step_type=dm_env.StepType.LAST)
    self._ended = timestep.last()
    return timestep
