"""Base class of environment wrappers."""

from collections.abc import Callable, Mapping
from typing import Any

import dm_env
import numpy as np
from dm_env import specs

from repertory.environments.batches.layout import Nest
from repertory.environments.rendering import rendering


class EnvironmentWrapper(dm_env.Environment):
  """Forwards all calls to an environment; subclasses override some.

  One that changes timesteps overrides `_convert`.
  """

  def __init__(self, environment: dm_env.Environment):
    self._environment = environment

  @property
  def environment(self) -> dm_env.Environment:
    """The wrapped environment."""
    return self._environment

  def reset(self) -> dm_env.TimeStep:
    return self._convert(self._environment.reset())

  def step(self, action: Nest) -> dm_env.TimeStep:
    return self._convert(self._environment.step(action))

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

  @property
  def info(self) -> Mapping[str, Any] | None:
    """Info of the wrapped environment's last step; None if it has none."""
    return getattr(self._environment, 'info', None)

  def render(self) -> np.ndarray:
    """Renders the wrapped environment: see `rendering`."""
    return rendering.render(self._environment)

  @property
  def render_fps(self) -> float:
    """Frames per second of the wrapped environment's video."""
    return rendering.rate(self._environment)

  def close(self) -> None:
    self._environment.close()


def map_spec(
  spec: specs.Array, function: Callable[[np.ndarray], np.ndarray]
) -> specs.Array:
  """Returns the spec of arrays of a spec after a change of their shape."""
  if not isinstance(spec, specs.BoundedArray):
    shape = function(np.zeros(spec.shape, spec.dtype)).shape
    return specs.Array(shape, spec.dtype, spec.name)
  minimum, maximum = (
    function(np.broadcast_to(bound, spec.shape))
    for bound in (spec.minimum, spec.maximum)
  )
  return specs.BoundedArray(
    minimum.shape, spec.dtype, minimum, maximum, spec.name
  )
