"""Shows the last few observations at once, so that motion is visible."""

import collections
from typing import Any

import dm_env
import numpy as np
from dm_env import specs

from repertory.environments import argument_checks, layout
from repertory.environments.wrappers import environment_wrapper

Nest = Any


class FrameStack(environment_wrapper.EnvironmentWrapper):
  """Stacks the last observations along a new last axis, the newest at its end.

  Every leaf of a nested observation is stacked. At the start of an episode the
  first observation takes the place of those before it.
  """

  def __init__(self, environment: dm_env.Environment, num_frames: int):
    """Wraps the environment.

    Args:
      environment: The environment.
      num_frames: Length of the new axis, at least 1.

    Raises:
      ValueError: If `num_frames` is not an integer of at least 1.
    """
    super().__init__(environment)
    self._num_frames = argument_checks.check_integer(
      'num_frames', num_frames, 1
    )
    self._layout = layout.Layout(environment.observation_spec(), 'observation')
    # One queue of frames for each leaf.
    self._frames: list[collections.deque] = []

  def reset(self) -> dm_env.TimeStep:
    """Starts an episode with the first observation repeated."""
    return self._stack(self._environment.reset())

  def step(self, action: Nest) -> dm_env.TimeStep:
    """Takes one step, or starts an episode after the last one."""
    return self._stack(self._environment.step(action))

  def observation_spec(self) -> Nest:
    """Returns the specs with `num_frames` as their last axis."""
    return self._layout.unflatten(
      [_stack_spec(spec, self._num_frames) for spec in self._layout.specs]
    )

  def _stack(self, timestep: dm_env.TimeStep) -> dm_env.TimeStep:
    leaves = self._layout.flatten(timestep.observation)
    # Copies, as the environment may use its buffers again.
    leaves = [np.array(leaf) for leaf in leaves]
    if timestep.first():
      self._frames = [
        collections.deque([leaf] * self._num_frames, self._num_frames)
        for leaf in leaves
      ]
    else:
      for frames, leaf in zip(self._frames, leaves):
        frames.append(leaf)
    return timestep._replace(
      observation=self._layout.unflatten(
        [np.stack(frames, axis=-1) for frames in self._frames]
      )
    )


def _stack_spec(spec: specs.Array, num_frames: int) -> specs.Array:
  shape = (*spec.shape, num_frames)
  if not isinstance(spec, specs.BoundedArray):
    return specs.Array(shape, spec.dtype, spec.name)
  return specs.BoundedArray(
    shape,
    spec.dtype,
    spec.minimum[..., np.newaxis] if spec.minimum.shape else spec.minimum,
    spec.maximum[..., np.newaxis] if spec.maximum.shape else spec.maximum,
    spec.name,
  )
