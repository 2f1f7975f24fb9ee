"""Base class of environment wrappers, and the time limit of episodes."""

from typing import Any

import dm_env

from repertory.environments.batches.layout import (
  EnvironmentContractError,
  Nest,
)
from repertory.environments.rendering import rendering
from repertory.environments.values import argument_checks, casting


class EnvironmentWrapper(dm_env.Environment):
  """Forwards all calls to an environment; subclasses override some.

  One that changes timesteps overrides `_convert`. Further attributes, such as
  `info` and `render_fps`, are those of the wrapped environment.
  """

  def __init__(self, environment: dm_env.Environment):
    self._environment = environment

  def __getattr__(self, name: str) -> Any:
    if name.startswith('_'):  # While it is unpickled.
      raise AttributeError(name)
    return getattr(self._environment, name)

  @property
  def environment(self) -> dm_env.Environment:
    """The wrapped environment."""
    return self._environment

  def reset(self) -> dm_env.TimeStep:
    timestep = self._environment.reset()
    check_timestep(self._environment, 'reset', timestep)
    return self._convert(timestep)

  def step(self, action: Nest) -> dm_env.TimeStep:
    timestep = self._environment.step(action)
    check_timestep(self._environment, 'step', timestep)
    return self._convert(timestep)

  def _convert(self, timestep: dm_env.TimeStep) -> dm_env.TimeStep:
    """Returns the timestep that `reset` and `step` return."""
    return timestep

  def observation_spec(self) -> Nest:
    return self._environment.observation_spec()

  def action_spec(self) -> Nest:
    return self._environment.action_spec()

  def reward_spec(self) -> Nest:
    return self._environment.reward_spec()

  def discount_spec(self) -> Nest:
    return self._environment.discount_spec()

  def render(self) -> Any:
    """Renders the wrapped environment: see `rendering`."""
    return rendering.render(self._environment)

  def close(self) -> None:
    self._environment.close()


def check_timestep(environment: Any, method: str, timestep: Any) -> None:
  """Raises EnvironmentContractError unless a method returned a time step."""
  if not isinstance(timestep, dm_env.TimeStep):
    raise EnvironmentContractError(
      f'{type(environment).__name__}: `{method}` must return a '
      f'`dm_env.TimeStep`, got {casting.shorten(timestep)}. Return the result '
      'of `dm_env.restart`, `transition`, `termination` or `truncation`.'
    )


class StepLimit(EnvironmentWrapper):
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

  def step(self, action: Nest) -> dm_env.TimeStep:
    return self.reset() if self._ended else super().step(action)

  def _convert(self, timestep: dm_env.TimeStep) -> dm_env.TimeStep:
    self._num_steps = 0 if timestep.first() else self._num_steps + 1
    if timestep.mid() and self._num_steps >= self._max_steps:
      timestep = timestep._replace(step_type=dm_env.StepType.LAST)
    self._ended = timestep.last()
    return timestep
