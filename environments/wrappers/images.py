"""Image wrappers: channels on the last axis, and frame stacking."""

import collections
from collections.abc import Callable, Sequence
from typing import Any

import dm_env
import numpy as np
from dm_env import specs

from repertory.components.runtime import image_layouts
from repertory.environments.batches import layout
from repertory.environments.batches.layout import Nest
from repertory.environments.values import argument_checks
from repertory.environments.wrappers import environment_wrapper


class ChannelsLast(environment_wrapper.EnvironmentWrapper):
  """Transposes images from `[C, H, W]` to `[H, W, C]`.

  Every leaf of three axes counts as an image, including gray frames stacked
  along a first axis, `[T, H, W]`. All other leaves are unchanged.
  """

  def __init__(self, environment: dm_env.Environment):
    """Wraps the environment.

    Raises:
      ValueError: If no leaf of its observation has three axes, or if the shape
        of one suggests that its channels are last already.
    """
    super().__init__(environment)
    leaves = layout.NestLayout(environment.observation_spec(), 'observation')
    pairs = list(zip(leaves.paths, leaves.specs))
    if not any(len(spec.shape) == 3 for spec in leaves.specs):
      found = [f'{p} of shape {s.shape} and dtype {s.dtype}' for p, s in pairs]
      raise argument_checks.ArgumentError(
        'environment',
        'expected an image [channels, height, width] in its observation, got '
        f'{", ".join(found)}.',
      )
    for path, spec in pairs:
      if image_layouts.is_channels_last(spec.shape):
        raise argument_checks.ArgumentError(
          'environment',
          'expected images [channels, height, width], got '
          f'{path} of shape {spec.shape}, which looks like [height, width, '
          'channels]. Leave out ?channels_first=true or wrappers.ChannelsLast.',
        )
    self._move = leaves.mapper(
      [_move if len(s.shape) == 3 else _keep for s in leaves.specs]
    )
    self._spec = leaves.unflatten(
      [_map_spec(s, _move) if len(s.shape) == 3 else s for s in leaves.specs]
    )

  def observation_spec(self) -> Nest:
    return self._spec

  def _convert(self, timestep: dm_env.TimeStep) -> dm_env.TimeStep:
    return timestep._replace(observation=self._move(timestep.observation))


def _move(image: np.ndarray) -> np.ndarray:
  # The batch rejects images of other ranks.
  return np.ascontiguousarray(np.moveaxis(np.asarray(image), 0, -1))


def _keep(leaf: Any) -> Any:
  return leaf


class FrameStack(environment_wrapper.EnvironmentWrapper):
  """Stacks the last observations, the newest last.

  Every leaf of a nested observation is stacked: images `[H, W, C]` along their
  channels, all others along a new last axis. A discrete leaf becomes an array
  of bounded integers. At the start of an episode the stack is filled with the
  first observation.
  """

  def __init__(self, environment: dm_env.Environment, num_frames: int):
    """Wraps the environment.

    Args:
      environment: The environment.
      num_frames: Number of frames T, at least 1.

    Raises:
      ValueError: If `num_frames` is not an integer of at least 1, or an image
        has its channels first.
    """
    super().__init__(environment)
    num_frames = argument_checks.check_integer('num_frames', num_frames, 1)
    self._layout = layout.NestLayout(
      environment.observation_spec(), 'observation'
    )
    for path, spec in zip(self._layout.paths, self._layout.specs):
      if image_layouts.is_channels_first(spec.shape):
        raise argument_checks.ArgumentError(
          'environment',
          f'expected images [height, width, channels], got {path} of shape '
          f'{spec.shape}, which looks like [channels, height, width]. Put '
          'wrappers.ChannelsLast inside: '
          f'FrameStack(ChannelsLast(environment), {num_frames}).',
        )
    self._spec = self._layout.unflatten(
      [
        _map_spec(spec, lambda bound: _join([bound] * num_frames))
        for spec in self._layout.specs
      ]
    )
    # The leaves of the last observations.
    self._frames: collections.deque = collections.deque(maxlen=num_frames)

  def observation_spec(self) -> Nest:
    """Returns the specs, `[H, W, C · T]` of images and `[..., T]` of others."""
    return self._spec

  def _convert(self, timestep: dm_env.TimeStep) -> dm_env.TimeStep:
    leaves = self._layout.flatten(timestep.observation)
    # Copies, because the environment may reuse its buffers.
    leaves = [np.array(leaf) for leaf in leaves]
    is_first = timestep.first()
    self._frames.extend([leaves] * (self._frames.maxlen if is_first else 1))
    stacks = [_join(frames) for frames in zip(*self._frames)]
    return timestep._replace(observation=self._layout.unflatten(stacks))


def _join(frames: Sequence[np.ndarray]) -> np.ndarray:
  is_image = frames[0].ndim == 3
  return (np.concatenate if is_image else np.stack)(frames, axis=-1)


def _map_spec(
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
