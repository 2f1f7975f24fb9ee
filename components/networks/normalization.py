"""Observations of mean 0 and deviation 1."""

import numpy as np
import sonnet as snt
import tensorflow as tf
import tree

from repertory.components import moments, nests, specs, types
from repertory.components.networks import previous_actions

# Keeps what never changes from being divided by 0.
_MIN_VARIANCE = 1e-8


class ObservationNormalizer(snt.Module):
  """Shifts and scales numbers by the mean and the deviation seen so far.

  These are variables of the network, not trained but exported with it: whoever
  acts normalizes as the learner does. They stay as they are until `update`.

  `DiscreteArray`s and booleans pass as they are, images (rank 3) by default; so
  does the action before, which `ObservationTorso` scales by its bounds.
  """

  def __init__(
    self,
    observation_spec: types.Nest,
    max_abs_value: float = 10.0,
    *,
    with_images: bool = False,
    name: str = 'observation_normalizer',
  ):
    """Starts with mean 0 and deviation 1, which the first `update` replaces.

    Args:
      observation_spec: Nest of array specs, without a batch axis.
      max_abs_value: Normalized numbers are clipped to ± this.
      with_images: Whether images are normalized, too, each number by itself.
    """
    super().__init__(name=name)
    self._leaves_of = nests.flattener(observation_spec)
    self._unflatten = nests.Unflattener(observation_spec)
    self._max_abs_value = max_abs_value
    leaf_specs = tree.flatten(observation_spec)
    are_actions = previous_actions.find(observation_spec)
    self._places = [
      i
      for i, leaf_spec in enumerate(leaf_specs)
      if _is_normalized(leaf_spec, with_images) and not are_actions[i]
    ]
    # In double precision, for after 10⁷ steps another one would be lost.
    self._count = _make_variable(np.zeros([]), 'count')
    shapes = [leaf_specs[i].shape for i in self._places]
    self._means = [_make_variable(np.zeros(s), 'mean') for s in shapes]
    self._variances = [_make_variable(np.ones(s), 'variance') for s in shapes]

  @property
  def has_seen(self) -> tf.Tensor:
    """Whether any observation was taken in, a bool."""
    return self._count > 0

  def __call__(self, observation: types.Nest) -> types.Nest:
    """Maps observations `[B, ...]` to such of the same structure.

    Args:
      observation: Nest as the spec has it.

    Returns:
      What is normalized as float32, all else as it came.
    """
    leaves = self._leaves_of(observation)
    statistics = zip(self._places, self._means, self._variances)
    for place, mean, variance in statistics:
      # In double precision, for the mean may be large beside the deviation.
      shifted = tf.cast(leaves[place], tf.float64) - mean
      normalized = tf.cast(
        shifted * tf.math.rsqrt(variance + _MIN_VARIANCE), tf.float32
      )
      leaves[place] = tf.clip_by_value(
        normalized, -self._max_abs_value, self._max_abs_value
      )
    return self._unflatten(leaves)

  def update(self, observation: types.Nest, mask: tf.Tensor) -> None:
    """Takes observations into mean and deviation.

    Args:
      observation: Nest of `[T, B, ...]`.
      mask: Bool `[T, B]`: which of them count.
    """
    leaves = self._leaves_of(observation)
    before = tf.identity(self._count)
    for place, mean, variance in zip(
      self._places, self._means, self._variances
    ):
      merged = moments.merge(
        moments.Moments(before, mean, variance),
        moments.of_batch(leaves[place], mask),
      )
      mean.assign(merged.mean)
      variance.assign(merged.variance)
    self._count.assign_add(tf.reduce_sum(tf.cast(mask, tf.float64)))


def _is_normalized(spec: specs.Array, with_images: bool) -> bool:
  return (
    (with_images or len(spec.shape) < 3)
    and not isinstance(spec, specs.DiscreteArray)
    and np.issubdtype(spec.dtype, np.number)
  )


def _make_variable(value: np.ndarray, name: str) -> tf.Variable:
  return tf.Variable(value, trainable=False, dtype=tf.float64, name=name)
