"""Image wrappers: layout, color and size of images, and frame stacking."""

import functools
from collections.abc import Callable
from typing import Any

import dm_env
import numpy as np
from dm_env import specs

from repertory.components.runtime import image_layouts, stacked_array
from repertory.environments.batches import layout, mask_check, vector_batch
from repertory.environments.batches.layout import Nest
from repertory.environments.values import argument_checks
from repertory.environments.wrappers import environment_wrapper, observations


class ChannelsLast(observations.ChangedObservations):
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
    super().__init__(
      environment,
      functools.partial(observations.keeping_masks, channels_last),
    )


def channels_last(spec: Nest) -> observations.ObservationMap:
  """Transposes images from `[C, H, W]` to `[H, W, C]`, see `ChannelsLast`."""
  leaves = layout.NestLayout(spec, 'observation')
  for path, leaf in zip(leaves.paths, leaves.specs):
    if image_layouts.is_channels_last(leaf.shape):
      raise argument_checks.ArgumentError(
        'environment',
        'expected images [channels, height, width], got '
        f'{path} of shape {leaf.shape}, which looks like [height, width, '
        'channels]. Leave out ?channels_first=true or wrappers.ChannelsLast.',
      )
  return _of_images(
    leaves, _move, '[channels, height, width]', convert_spec=_map_spec
  )


def _move(images: np.ndarray) -> np.ndarray:
  # A batch rejects images of other ranks.
  return np.ascontiguousarray(np.moveaxis(np.asarray(images), -3, -1))


def grayscale(spec: Nest) -> observations.ObservationMap:
  """Converts color images to gray ones, `[H, W, 1]`, by their luma.

  That is 0.299 R + 0.587 G + 0.114 B, of ITU-R BT.601.
  """
  weights = np.array([0.299, 0.587, 0.114], np.float32)

  def convert(image: np.ndarray) -> np.ndarray:
    gray = (image.astype(np.float32) @ weights)[..., None]
    if image.dtype.kind in 'iu':
      gray = np.rint(gray)
    return gray.astype(image.dtype)

  leaves = layout.NestLayout(spec, 'observation')
  return _of_images(leaves, convert, '[height, width, 3]', 3)


def resize(spec: Nest, size: int) -> observations.ObservationMap:
  """Resizes images to squares, by area when they shrink.

  A pixel is the mean of the area that it covers; when images grow, it is the
  nearest one.
  """

  def convert(image: np.ndarray) -> np.ndarray:
    *_, height, width, _ = image.shape
    rows, columns = _area_weights(height, size), _area_weights(width, size)
    resized = np.einsum(
      'ih,...hwc,jw->...ijc', rows, image.astype(np.float32), columns,
      optimize=True,
    )  # fmt: skip
    if image.dtype.kind in 'iu':
      resized = np.rint(resized)
    return resized.astype(image.dtype)

  leaves = layout.NestLayout(spec, 'observation')
  return _of_images(leaves, convert, '[height, width, channels]')


@functools.cache
def _area_weights(before: int, after: int) -> np.ndarray:
  """Returns the share of each old pixel in each new one, `[after, before]`."""
  if after >= before:
    nearest = (np.arange(after) * before) // after
    return np.eye(before, dtype=np.float32)[nearest]
  edges = np.arange(after + 1) * before / after
  starts = np.arange(before)
  overlap = np.minimum(edges[1:, None], starts + 1) - np.maximum(
    edges[:-1, None], starts
  )
  return (np.maximum(overlap, 0) * after / before).astype(np.float32)


def _of_images(
  leaves: layout.NestLayout,
  convert: Callable[[np.ndarray], np.ndarray],
  expected: str,
  num_channels: int | None = None,
  convert_spec: Callable[..., specs.Array] | None = None,
) -> observations.ObservationMap:
  """Applies a function to all images `[..., A, B, C]`; others are unchanged.

  Raises an ArgumentError if no leaf has the `expected` shape.
  """
  are_images = [
    len(spec.shape) == 3 and num_channels in (None, spec.shape[2])
    for spec in leaves.specs
  ]
  pairs = list(zip(leaves.specs, are_images))
  if not any(are_images):
    found = [
      f'{path} of shape {spec.shape} and dtype {spec.dtype}'
      for path, spec in zip(leaves.paths, leaves.specs)
    ]
    raise argument_checks.ArgumentError(
      'environment',
      f'expected an image {expected} in its observation, got '
      f'{", ".join(found)}.',
    )
  convert_spec = convert_spec or _convert_spec
  changed = [convert_spec(s, convert) if one else s for s, one in pairs]
  functions = [convert if one else _keep for _, one in pairs]
  return observations.ObservationMap(
    leaves.unflatten(changed), leaves.mapper(functions)
  )


def _convert_spec(
  spec: specs.Array, convert: Callable[[np.ndarray], np.ndarray]
) -> specs.Array:
  """Returns the spec of converted images, with the widest bounds for all."""
  shape = convert(np.zeros(spec.shape, spec.dtype)).shape
  if not isinstance(spec, specs.BoundedArray):
    return specs.Array(shape, spec.dtype, spec.name)
  bounds = np.min(spec.minimum), np.max(spec.maximum)
  return specs.BoundedArray(shape, spec.dtype, *bounds, spec.name)


def _keep(leaf: Any) -> Any:
  return leaf


class _Frames:
  """The last T observations of an environment, or of each slot of a batch."""

  def __init__(self, observation_spec: Nest, num_frames: int):
    self.num_frames = argument_checks.check_integer('num_frames', num_frames, 1)
    self._layout = layout.NestLayout(observation_spec, 'observation')
    masks = f'observation[{mask_check.NAME!r}]'
    self._are_stacked = [not p.startswith(masks) for p in self._layout.paths]
    self._are_images = [len(spec.shape) == 3 for spec in self._layout.specs]
    for path, spec in zip(self._layout.paths, self._layout.specs):
      if image_layouts.is_channels_first(spec.shape):
        raise argument_checks.ArgumentError(
          'environment',
          f'expected images [height, width, channels], got {path} of shape '
          f'{spec.shape}, which looks like [channels, height, width]. Put '
          'wrappers.ChannelsLast inside: '
          f'FrameStack(ChannelsLast(environment), {num_frames}).',
        )
    rows = zip(self._layout.specs, self._are_stacked, self._are_images)
    self.spec = self._layout.unflatten(
      [
        self._stack_spec(spec, is_image) if is_stacked else spec
        for spec, is_stacked, is_image in rows
      ]
    )  # fmt: skip
    self._stacks: list[np.ndarray] = []

  def _stack_spec(self, spec: specs.Array, is_image: bool) -> specs.Array:
    repeat = functools.partial(self._repeat, is_image=is_image)
    stack = _map_spec(spec, repeat)
    if not (is_image and isinstance(stack, specs.BoundedArray)):
      return stack
    return stacked_array.StackedArray(
      stack.shape, stack.dtype, stack.minimum, stack.maximum, stack.name,
      self.num_frames,
    )  # fmt: skip

  def push(self, observation: Nest, first: np.ndarray) -> Nest:
    """Returns the stacks after observations, `[...]` or `[B, ...]`."""
    leaves = list(map(np.asarray, self._layout.flatten(observation)))
    stacks = self._stacks or leaves
    rows = zip(stacks, leaves, self._are_stacked, self._are_images)
    self._stacks = [
      self._push(stack, leaf, first, is_image) if is_stacked else leaf
      for stack, leaf, is_stacked, is_image in rows
    ]
    return self._layout.unflatten(self._stacks)

  def _push(
    self, stack: np.ndarray, leaf: np.ndarray, first: np.ndarray, is_image: bool
  ) -> np.ndarray:
    if first.all():
      return self._repeat(leaf, is_image)
    newest = leaf if is_image else leaf[..., None]
    pushed = np.concatenate([stack[..., newest.shape[-1] :], newest], axis=-1)
    if first.any():
      pushed[first] = self._repeat(leaf[first], is_image)
    return pushed

  def _repeat(self, leaf: np.ndarray, is_image: bool) -> np.ndarray:
    newest = leaf if is_image else np.asarray(leaf)[..., None]
    return np.concatenate([newest] * self.num_frames, axis=-1)


class FrameStack(environment_wrapper.EnvironmentWrapper):
  """Stacks the last observations, the newest last.

  Every leaf of a nested observation is stacked, except an action mask: images
  `[H, W, C]` along their channels, all others along a new last axis. A discrete
  leaf becomes an array of bounded integers. At the start of an episode the
  stack is filled with the first observation.
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
    self._frames = _Frames(environment.observation_spec(), num_frames)

  def observation_spec(self) -> Nest:
    """Returns the specs, `[H, W, C · T]` of images and `[..., T]` of others."""
    return self._frames.spec

  def _convert(self, timestep: dm_env.TimeStep) -> dm_env.TimeStep:
    first = np.asarray(timestep.first())
    stacks = self._frames.push(timestep.observation, first)
    return timestep._replace(observation=stacks)


class BatchFrameStack(vector_batch.BatchWrapper):
  """Stacks the last observations of each slot of a batch, see `FrameStack`."""

  def __init__(self, batch: Any, num_frames: int):
    """Takes the arguments of `FrameStack`, with a batch of environments."""
    super().__init__(batch)
    self._frames = _Frames(batch.observation_spec(), num_frames)

  def observation_spec(self) -> Nest:
    return self._frames.spec

  def _convert(self, timestep: dm_env.TimeStep) -> dm_env.TimeStep:
    first = timestep.step_type == dm_env.StepType.FIRST
    stacks = self._frames.push(timestep.observation, first)
    return timestep._replace(observation=stacks)


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
