"""Action masks: the discrete actions that an observation allows.

A mask is the leaf `action_mask` of the observation, of bools that are true for
allowed choices. For an integer with n choices it is `[n]`, and for an array of
integers their concatenated masks, or `[..., n]` if all have n choices. An
action of several parts has a nest of such masks, of its structure. Where an
agent rates combinations, an array of K integers may instead have a mask of
these, `[n_1, …, n_K]`; `[2, 2]` is that of two integers with two choices each.

Networks assign `MASKED` to masked actions, so maxima, softmax policies and
gradients ignore them. If no choice is allowed, as after the end of an episode
and in padding, all are; an environment may not return that before an action.
"""

import functools
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf
import tree

from repertory.components import specs, types
from repertory.components.actions import action_parts
from repertory.components.runtime import mask_layouts, nests

NAME = mask_layouts.NAME
# Output of a network for a masked action: far below any other, yet finite.
MASKED = -1e30


class ActionMasks:
  """Masks of a network's outputs, read from observations; see `find`.

  Attributes:
    leaf_index: Index of the mask among the leaves of an observation, if it is
      the mask of a single integer; else None.
  """

  def __init__(
    self,
    spec: specs.EnvironmentSpec,
    path: tuple[str, ...],
    combined: bool,
  ):
    self._path, self._combined = path, combined
    self._leaves_of = nests.flattener(spec.actions)
    mask_spec = self._read(spec.observations)
    try:
      leaves = self._leaves_of(mask_spec)
    except (TypeError, ValueError) as error:
      raise ValueError(
        f'observations{list(path)} must have the structure of the actions, '
        f'{spec.actions!r}, got {mask_spec!r}.'
      ) from error
    parts = action_parts.parts_of(spec.actions)
    # Of each leaf: its number of axes, and the sizes of the masks along them.
    self._layouts = [
      (len(leaf.shape), _sizes_of(part, leaf, combined))
      for part, leaf in zip(parts, leaves)
    ]
    self.leaf_index: Any = None
    if isinstance(spec.actions, specs.DiscreteArray):
      paths = [leaf[0] for leaf in tree.flatten_with_path(spec.observations)]
      self.leaf_index = paths.index(path)

  def __call__(self, observation: types.Nest) -> tf.Tensor:
    """Maps observations `[..., *observation]` to masks `[..., P]`.

    P counts the choices of all integers, or their combinations, of which the
    last integer varies fastest.
    """
    masks = []
    for leaf, (rank, sizes) in zip(
      self._leaves_of(self._read(observation)), self._layouts
    ):
      flat = _merge_axes(leaf, rank)
      masks += tf.split(flat, sizes, axis=-1) if len(sizes) > 1 else [flat]
    masks = [
      mask | ~tf.reduce_any(mask, axis=-1, keepdims=True) for mask in masks
    ]
    if self._combined:
      return functools.reduce(
        lambda one, next_one: _merge_axes(
          one[..., :, None] & next_one[..., None, :], 2
        ),
        masks,
      )
    return tf.concat(masks, axis=-1) if len(masks) > 1 else masks[0]

  def in_numpy(self, leaves: list[np.ndarray]) -> np.ndarray:
    """Returns the masks `[B, A]` from the leaves of observations."""
    mask = leaves[self.leaf_index]
    return mask | ~mask.any(-1, keepdims=True)

  def _read(self, observation: types.Nest) -> types.Nest:
    for key in self._path:
      observation = observation[key]
    return observation


def find(
  spec: specs.EnvironmentSpec, *, combined: bool = True
) -> ActionMasks | None:
  """Returns the masks of an environment's actions; None if it has none.

  Args:
    spec: Environment spec. The mask is at the top of the observation, or of its
      'observation', for agents that observe previous actions.
    combined: Whether outputs are of the combinations of all integers, as of
      `DiscreteActions`; otherwise of the choices of each integer in turn, as of
      `distributions.make_distribution`.

  Raises:
    ValueError: If the mask does not fit the actions.
  """
  observation = spec.observations
  for path in ((NAME,), ('observation', NAME)):
    if not isinstance(observation, Mapping):
      return None
    if NAME in observation:
      return ActionMasks(spec, path, combined)
    observation = observation.get('observation')
  return None


def apply(outputs: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
  """Assigns `MASKED` to masked actions, without a gradient.

  Outputs are `[..., A, *more]`, masks `[..., A]`.
  """
  for _ in range(outputs.shape.rank - mask.shape.rank):
    mask = mask[..., None]
  return tf.where(mask, outputs, tf.constant(MASKED, outputs.dtype))


def is_allowed(outputs: Any) -> Any:
  """Returns which outputs, a tensor or an array, are not of masked actions."""
  return outputs > 0.5 * MASKED


def mean_allowed(outputs: tf.Tensor, axis: int | None = None) -> tf.Tensor:
  """Returns the mean of the outputs of actions that are not masked."""
  allowed = is_allowed(outputs)
  total = tf.reduce_sum(tf.where(allowed, outputs, 0), axis)
  return total / tf.reduce_sum(tf.cast(allowed, outputs.dtype), axis)


def _sizes_of(
  part: action_parts.ActionPart, mask_spec: specs.Array, combined: bool
) -> list[int]:
  """Returns the sizes of the masks in a leaf."""
  if not action_parts.is_discrete(part.spec):
    raise ValueError(
      f'{part.name} must be integers with bounds to be masked, got '
      f'{part.spec!r}. Remove {NAME} from the observation, or rename it.'
    )
  _, counts = action_parts.choices_of(part.spec)
  sizes = counts.ravel().tolist()
  options = {
    shape: [math.prod(sizes)] if of_combinations else sizes
    for shape, of_combinations in mask_layouts.layouts_of(
      part.spec.shape, sizes
    ).items()
    if combined or not of_combinations
  }
  if mask_spec.dtype != np.bool_ or mask_spec.shape not in options:
    shapes = ' or '.join(map(str, options))
    raise ValueError(
      f'{NAME} of {part.name} must be bools of shape {shapes}, got '
      f'{mask_spec!r}.'
    )
  return options[mask_spec.shape]


def _merge_axes(leaf: tf.Tensor, number: int) -> tf.Tensor:
  """Merges the last axes, whose sizes are known."""
  if number == 1:
    return leaf
  shape = tf.concat([tf.shape(leaf)[:-number], [-1]], 0)
  merged = tf.reshape(leaf, shape)
  size = math.prod(leaf.shape[-number:])
  return tf.ensure_shape(merged, [*leaf.shape[:-number], size])
