"""Wrapper that moves the channels of images to the last axis."""

import dm_env
import numpy as np

from repertory.components.runtime import image_layouts
from repertory.environments.batches import layout
from repertory.environments.batches.layout import Nest
from repertory.environments.values.argument_checks import ArgumentError
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
    self._layout = layout.NestLayout(
      environment.observation_spec(), 'observation'
    )
    are_images = [len(spec.shape) == 3 for spec in self._layout.specs]
    if not any(are_images):
      leaves = [
        f'{path} of shape {spec.shape} and dtype {spec.dtype}'
        for path, spec in zip(self._layout.paths, self._layout.specs)
      ]
      raise ArgumentError(
        'environment',
        'expected an image [channels, height, width] in its observation, got '
        f'{", ".join(leaves)}.',
      )
    for path, spec in zip(self._layout.paths, self._layout.specs):
      if image_layouts.is_channels_last(spec.shape):
        raise ArgumentError(
          'environment',
          'expected images [channels, height, width], got '
          f'{path} of shape {spec.shape}, which looks like [height, width, '
          'channels]. Leave out ?channels_first=true or wrappers.ChannelsLast.',
        )
    self._moves = [
      _move if is_image else lambda leaf: leaf for is_image in are_images
    ]

  def observation_spec(self) -> Nest:
    return self._layout.unflatten(
      [
        environment_wrapper.map_spec(spec, _move) if move is _move else spec
        for spec, move in zip(self._layout.specs, self._moves)
      ]
    )

  def _convert(self, timestep: dm_env.TimeStep) -> dm_env.TimeStep:
    observation = self._layout.map(self._moves, timestep.observation)
    return timestep._replace(observation=observation)


def _move(image: np.ndarray) -> np.ndarray:
  # The batch rejects images of other ranks.
  return np.ascontiguousarray(np.moveaxis(np.asarray(image), 0, -1))
