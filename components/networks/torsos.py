"""From observations to feature vectors."""

import functools
from collections.abc import Sequence

import numpy as np
import sonnet as snt
import tensorflow as tf
import tree
from absl import logging

from repertory.components import choices, image_layouts, nests, specs, types
from repertory.components.networks import (
  bodies,
  image_torsos,
  previous_actions,
)


class ObservationTorso(snt.Module):
  """Turns each leaf of an observation into a vector, joins them, then layers.

  What becomes of a leaf is told by its spec:

  - Rank 3 is an image, height by width by channels. It goes through an image
    torso of its own, which divides uint8 by 255.
  - A `DiscreteArray` becomes one-hot; a value out of its range, zeros.
  - Of the action before, for agents that observe it, all integers with bounds
    become one-hot, and floats are scaled from their bounds to [−1, 1].
  - Other numbers of rank 0 to 2 are flattened and taken as they are, uint8 too.

  The vectors are joined in the order of `tree.flatten`, in which mappings are
  sorted by key.
  """

  def __init__(
    self,
    observation_spec: types.Nest,
    hidden_sizes: Sequence[int],
    image_torso: str = 'nature',
    body: str = 'mlp',
    name: str = 'observation_torso',
  ):
    """Makes the layers; their variables come with the first call.

    Args:
      observation_spec: Nest of array specs, without a batch axis.
      hidden_sizes: Layers on top; the last one's size is D. Without any, D is
        the size of all vectors together.
      image_torso: One of `IMAGE_TORSOS`, or 'auto' for the one that
        `image_torsos.choose` finds for each leaf.
      body: What the layers are, one of `BODIES`: 'mlp', the only one that may
        be of no layers, has a ReLU after each.

    Raises:
      ValueError: As by `check_observation`.
    """
    super().__init__(name=name)
    check_observation(observation_spec, image_torso)
    self._leaf_specs = tree.flatten(observation_spec)
    self._leaves_of = nests.flattener(observation_spec)
    self._are_actions = previous_actions.find(observation_spec)
    self._image_torsos = []
    leaves = zip(self._leaf_specs, self._are_actions)
    for i, (spec, is_action) in enumerate(leaves):
      if _is_image(spec) and not is_action:
        chosen = image_torsos.choose(image_torso, *spec.shape[:2])
        make = image_torsos.IMAGE_TORSOS[chosen]
        # Numbered by leaf, so that variables have names of their own.
        self._image_torsos.append(make(name=f'{chosen}_{i}'))
    self._layers = bodies.make_body(body, hidden_sizes)

  def __call__(self, observation: types.Nest) -> tf.Tensor:
    """Maps a nest `[B, ...]` as the spec has it to features `[B, D]`."""
    leaves = self._leaves_of(observation)
    torsos = iter(self._image_torsos)
    vectors = []
    for spec, leaf, is_action in zip(
      self._leaf_specs, leaves, self._are_actions
    ):
      if is_action:
        vectors.append(previous_actions.encode(leaf, spec))
      elif _is_image(spec):
        image = tf.reshape(leaf, [tf.shape(leaf)[0], *spec.shape])
        vectors.append(next(torsos)(image))
      else:
        vectors.append(_to_vector(leaf, spec))
    joined = vectors[0] if len(vectors) == 1 else tf.concat(vectors, axis=-1)
    return self._layers(joined)  # [B, D]


def check_observation(
  observation_spec: types.Nest, image_torso: str = 'nature'
) -> None:
  """Refuses observations that `ObservationTorso` is no network for.

  Args:
    observation_spec: Nest of array specs, without a batch axis.
    image_torso: For leaves of rank 3: one of `IMAGE_TORSOS`, or 'auto'.

  Raises:
    ValueError: Naming the leaf, if it is not numeric, of rank 4 or more, empty,
      or an image that has its channels first or is too small for the torso;
      also if there is no leaf or no such torso.
  """
  if image_torso not in choices.IMAGE_TORSOS:
    raise ValueError(
      f'image_torso must be one of {list(choices.IMAGE_TORSOS)}, got '
      f'{image_torso!r}.'
    )
  leaves = tree.flatten_with_path(observation_spec)
  if not leaves:
    raise ValueError('The observation spec must have a leaf, got none.')
  are_actions = previous_actions.find(observation_spec)
  for (path, spec), is_action in zip(leaves, are_actions):
    where = 'The observation'
    if path:
      where = f'Leaf {"/".join(map(str, path))} of the observation'
    if not isinstance(spec, specs.Array):
      raise ValueError(f'{where} spec must be a dm_env spec, got {spec!r}.')
    numeric = np.issubdtype(spec.dtype, np.number) or spec.dtype == np.bool_
    if not numeric or len(spec.shape) > 3 or 0 in spec.shape:
      raise ValueError(
        f'{where} must be numeric, of rank 0 to 3 and '
        f'not empty, got shape {spec.shape} and dtype {spec.dtype}. '
        f'{_STACK_FRAMES if len(spec.shape) == 4 else ""}Give the builder a '
        'network of your own.'
      )
    if is_action:
      continue
    _check_layout(where, spec)
    if not _is_image(spec):
      continue
    chosen = image_torsos.choose(image_torso, *spec.shape[:2])
    min_pixels = image_torsos.IMAGE_TORSOS[chosen].min_pixels
    if min(spec.shape[:2]) < min_pixels:
      raise ValueError(
        f'{where} must be at least {min_pixels} pixels '
        f"high and wide for image_torso '{image_torso}', got shape "
        f"{spec.shape}. 'auto' and 'residual' take images of any size."
      )


_STACK_FRAMES = (
  'Frames are stacked along the channels, [height, width, frames · channels], '
  'by environments.wrappers.FrameStack. '
)
_PICTURE_PIXELS = image_layouts.PICTURE_PIXELS


def _check_layout(where: str, spec: specs.Array) -> None:
  """Refuses images `[C, H, W]`; warns of images that are not scaled.

  Raises:
    ValueError: If the image has few channels on its first axis.
  """
  shape, is_bytes = spec.shape, spec.dtype == np.uint8
  maximum = getattr(spec, 'maximum', 255 if is_bytes else 1)
  is_wide = bool(np.all(np.equal(maximum, 255)))
  if _is_image(spec):
    if image_layouts.is_channels_first(shape):
      raise ValueError(
        f'{where} must be an image [height, width, '
        f'channels], got shape {shape}, which looks like [channels, height, '
        "width]. Append ?channels_first=true to the environment's name if that "
        'is gym:<id> or <module>:<factory>, or wrap the environment in '
        'environments.wrappers.ChannelsLast.'
      )
    if is_wide and not is_bytes and min(shape[:2]) >= _PICTURE_PIXELS:
      _warn(
        f'{where}, an image of shape {shape}, has '
        f'numbers of {spec.dtype} up to 255, which are taken as they are. Give '
        'it as uint8, which is divided by 255, or scale it to [0, 1].'
      )
  elif len(shape) == 2 and is_bytes and is_wide:
    if min(shape) < _PICTURE_PIXELS:
      return
    _warn(
      f'{where}, uint8 of shape {shape}, is read as a '
      'vector of numbers up to 255, without convolutions. If it is an image, '
      f'give it channels, {[*shape, 1]}, as '
      'environments.wrappers.FrameStack(environment, 1) does.'
    )


@functools.cache
def _warn(message: str) -> None:
  """Logs a warning once in a process, which makes several networks."""
  logging.warning('%s', message)


def _is_image(spec: specs.Array) -> bool:
  return len(spec.shape) == 3


def _to_vector(leaf: tf.Tensor, spec: specs.Array) -> tf.Tensor:
  """Maps numbers `[B, ...]` to `[B, D]`."""
  if isinstance(spec, specs.DiscreteArray):
    # one_hot does not take all dtypes; int64 holds the values of all.
    return tf.one_hot(tf.cast(leaf, tf.int64), spec.num_values)
  size = int(np.prod(spec.shape))
  return tf.reshape(tf.cast(leaf, tf.float32), [tf.shape(leaf)[0], size])
