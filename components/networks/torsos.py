"""Observation torsos: map nested observations to feature vectors."""

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import sonnet as snt
import tensorflow as tf
import tree
from absl import logging

from repertory.components import specs, types
from repertory.components.actions import action_masks
from repertory.components.config import choices
from repertory.components.networks import image_torsos, previous_actions, trunks
from repertory.components.runtime import (
  image_layouts,
  nests,
  numpy_functions,
)


class ObservationTorso(snt.Module):
  """Embeds the leaves of an observation, followed by hidden layers.

  The spec of a leaf determines its embedding:

  - Rank 3 is an image, height by width by channels. Each image has its own
    image torso, which divides uint8 by 255.
  - A `DiscreteArray` becomes one-hot; values out of range become zeros.
  - In previous actions, for agents that observe them, bounded integers become
    one-hot, and bounded floats are scaled to [−1, 1].
  - Other leaves of rank 0 to 2 are flattened and not scaled, not even uint8.
  - Action masks are left out, see `action_masks`.

  The embeddings are concatenated in the order of `tree.flatten`, which sorts
  mappings by key.
  """

  def __init__(
    self,
    observation_spec: types.Nest,
    hidden_sizes: Sequence[int],
    image_torso: str = 'nature',
    body: str = 'mlp',
    name: str = 'observation_torso',
  ):
    """Creates the layers; the first call creates their variables.

    Args:
      observation_spec: Nest of array specs, without a batch axis.
      hidden_sizes: Sizes of the hidden layers; the last one is D. Without
        hidden layers, D is the total size of the embeddings.
      image_torso: One of `IMAGE_TORSOS`, or 'auto' to choose one for each leaf.
      body: Kind of the hidden layers, one of `BODIES`. Only 'mlp', with a ReLU
        after each layer, may have no layers.

    Raises:
      ValueError: See `check_observation`.
    """
    super().__init__(name=name)
    check_observation(observation_spec, image_torso)
    self._indices = _embedded_leaves(observation_spec)
    leaf_specs = tree.flatten(observation_spec)
    are_actions = previous_actions.find(observation_spec)
    self._leaf_specs = [leaf_specs[i] for i in self._indices]
    self._are_actions = [are_actions[i] for i in self._indices]
    self._leaves_of = nests.flattener(observation_spec)
    self._image_torsos = []
    leaves = zip(self._leaf_specs, self._are_actions)
    for i, (spec, is_action) in enumerate(leaves):
      if _is_image(spec) and not is_action:
        chosen = image_torsos.choose(image_torso, *spec.shape[:2])
        make = image_torsos.IMAGE_TORSOS[chosen]
        # Numbered by leaf, so that variables have unique names.
        self._image_torsos.append(make(name=f'{chosen}_{i}'))
    self._layers = trunks.make_trunk(body, hidden_sizes)

  def __call__(self, observation: types.Nest) -> tf.Tensor:
    """Maps observations `[B, ...]` to features `[B, D]`."""
    leaves = self._leaves_of(observation)
    torsos = iter(self._image_torsos)
    vectors = []
    for i, spec, is_action in zip(
      self._indices, self._leaf_specs, self._are_actions
    ):
      leaf = leaves[i]
      if is_action:
        vectors.append(previous_actions.encode(leaf, spec))
      elif _is_image(spec):
        image = tf.reshape(leaf, [tf.shape(leaf)[0], *spec.shape])
        vectors.append(next(torsos)(image))
      else:
        vectors.append(_to_vector(leaf, spec))
    joined = vectors[0] if len(vectors) == 1 else tf.concat(vectors, axis=-1)
    return self._layers(joined)  # [B, D]

  def in_numpy(self, weights: numpy_functions.Weights) -> Callable:
    """Returns the NumPy version without images, see `numpy_functions`."""
    if self._image_torsos or any(self._are_actions):
      raise numpy_functions.NoNumpyError('there are images or actions.')
    layers = numpy_functions.forward(self._layers, weights)
    specs_by_index = list(zip(self._indices, self._leaf_specs))
    num_rows = weights.num_rows

    def to_vector(leaf, spec):
      if isinstance(spec, specs.DiscreteArray):
        one_hot = leaf[:, None] == np.arange(spec.num_values)
        return one_hot.astype(np.float32)
      return leaf.reshape(num_rows, -1).astype(np.float32, copy=False)

    def call(leaves):
      vectors = [to_vector(leaves[i], spec) for i, spec in specs_by_index]
      return layers(
        vectors[0] if len(vectors) == 1 else np.concatenate(vectors, axis=-1)
      )

    return call


def check_observation(
  observation_spec: types.Nest, image_torso: str = 'nature'
) -> None:
  """Raises a ValueError for observations that `ObservationTorso` cannot embed.

  Args:
    observation_spec: Nest of array specs, without a batch axis.
    image_torso: For leaves of rank 3: one of `IMAGE_TORSOS`, or 'auto'.

  Raises:
    ValueError: If a leaf is not numeric, of rank 4 or more, empty, or an image
      that is channels-first or too small for the torso; it names the leaf. Also
      if there is no leaf, or the torso is unknown.
  """
  choices.check('image_torso', image_torso, choices.IMAGE_TORSOS)
  indices = _embedded_leaves(observation_spec)
  if not indices:
    raise ValueError(
      'The observation spec must have leaves, besides action masks, got '
      f'{observation_spec!r}.'
    )
  leaves = tree.flatten_with_path(observation_spec)
  are_actions = previous_actions.find(observation_spec)
  for i in indices:
    (path, spec), is_action = leaves[i], are_actions[i]
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
        'custom network.'
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
        f"{spec.shape}. 'auto' and 'residual' support images of any size."
      )


def _embedded_leaves(observation_spec: types.Nest) -> list[int]:
  """Returns the indices of the leaves that are not of action masks."""
  return [
    i
    for i, (path, _) in enumerate(tree.flatten_with_path(observation_spec))
    if path[:1] != (action_masks.NAME,)
    and path[:2] != ('observation', action_masks.NAME)
  ]


_STACK_FRAMES = (
  'Stack frames along the channels, [height, width, frames · channels], with '
  'environments.wrappers.FrameStack. '
)


def _check_layout(where: str, spec: specs.Array) -> None:
  """Rejects channels-first images, and warns of unscaled ones."""
  shape, is_bytes = spec.shape, spec.dtype == np.uint8
  maximum = getattr(spec, 'maximum', 255 if is_bytes else 1)
  is_wide = bool(np.all(np.equal(maximum, 255)))
  is_picture = min(shape[:2], default=0) >= image_layouts.PICTURE_PIXELS
  if _is_image(spec):
    if image_layouts.is_channels_first(shape):
      raise ValueError(
        f'{where} must be an image [height, width, '
        f'channels], got shape {shape}, which looks like [channels, height, '
        "width]. Append ?channels_first=true to the environment's name if that "
        'is gym:<id> or <module>:<factory>, or wrap the environment in '
        'environments.wrappers.ChannelsLast.'
      )
    if is_wide and not is_bytes and is_picture:
      _warn(
        f'{where}, an image of shape {shape}, has '
        f'{spec.dtype} values up to 255, which are not scaled. Return uint8, '
        'which is divided by 255, or scale it to [0, 1].'
      )
  elif len(shape) == 2 and is_bytes and is_wide and is_picture:
    _warn(
      f'{where}, uint8 of shape {shape}, is used as a '
      'vector of values up to 255, without convolutions. If it is an image, '
      f'add a channel axis, {[*shape, 1]}, such as by '
      'environments.wrappers.FrameStack(environment, 1).'
    )


@functools.cache
def _warn(message: str) -> None:
  """Logs a warning once per process, even for several networks."""
  logging.warning('%s', message)


def _is_image(spec: specs.Array) -> bool:
  return len(spec.shape) == 3


def _to_vector(leaf: tf.Tensor, spec: specs.Array) -> tf.Tensor:
  """Maps numbers `[B, ...]` to `[B, D]`."""
  if isinstance(spec, specs.DiscreteArray):
    # tf.one_hot does not support all dtypes, so cast to int64.
    return tf.one_hot(tf.cast(leaf, tf.int64), spec.num_values)
  size = math.prod(spec.shape)
  return tf.reshape(tf.cast(leaf, tf.float32), [tf.shape(leaf)[0], size])


def make_sequential(
  observation_spec: types.Nest,
  hidden_sizes: Sequence[int],
  image_torso: str,
  *layers: Callable[[tf.Tensor], Any],
  body: str = 'mlp',
  name: str | None = None,
) -> snt.Module:
  """Creates an `ObservationTorso` with layers on top, and all variables.

  The first of the layers maps features `[B, D]`.
  """
  torso = ObservationTorso(observation_spec, hidden_sizes, image_torso, body)
  network = snt.Sequential([torso, *layers], name=name)
  create_variables(network, observation_spec)
  return network


def create_variables(
  network: Callable[[types.Nest], Any], observation_spec: types.Nest
) -> None:
  """Creates the variables of a network by calling it once.

  Parts that the network does not call, such as an auxiliary head, have to be
  called separately. Array specs have no batch axis.
  """
  observation = specs.zeros(observation_spec, 1)
  network(tree.map_structure(tf.convert_to_tensor, observation))


def create_critic_variables(
  critic: Callable[[types.Nest, tf.Tensor], Any],
  observation_spec: types.Nest,
  action_size: int,
) -> None:
  """Creates the variables of a critic of actions `[B, D]` by one call."""
  action = tf.zeros([1, action_size])
  create_variables(
    lambda observation: critic(observation, action), observation_spec
  )
