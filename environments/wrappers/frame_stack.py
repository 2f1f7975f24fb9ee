"""Frame stacking."""

import collections
from collections.abc import Sequence

import dm_env
import numpy as np

from repertory.components.runtime import image_layouts
from repertory.environments.batches import layout
from repertory.environments.batches.layout import Nest
from repertory.environments.values import argument_checks
from repertory.environments.wrappers import environment_wrapper


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
    self._num_frames = argument_checks.check_integer(
      'num_frames', num_frames, 1
    )
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
    # One queue of frames per leaf.
    self._frames: list[collections.deque] = []

  def observation_spec(self) -> Nest:
    """Returns the specs, `[H, W, C · T]` of images and `[..., T]` of others."""
    return self._layout.unflatten(
      [
        environment_wrapper.map_spec(
          spec, lambda bound: _join([bound] * self._num_frames)
        )
        for spec in self._layout.specs
      ]
    )

  def _convert(self, timestep: dm_env.TimeStep) -> dm_env.TimeStep:
    leaves = self._layout.flatten(timestep.observation)
    # Copies, because the environment may reuse its buffers.
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
        [_join(frames) for frames in self._frames]
      )
    )


def _join(frames: Sequence[np.ndarray]) -> np.ndarray:
  is_image = frames[0].ndim == 3
  return (np.concatenate if is_image else np.stack)(frames, axis=-1)
