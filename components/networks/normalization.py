"""Observation normalization by running statistics."""

import numpy as np
import sonnet as snt
import tensorflow as tf
import tree

from repertory.components import specs, types
from repertory.components.networks import moments, previous_actions
from repertory.components.runtime import nests

# Avoids division by 0 for constant observations.
_MIN_VARIANCE = 1e-8


class ObservationNormalizer(snt.Module):
  """Normalizes observations by running mean and standard deviation.

  The statistics are non-trainable variables that are exported with the network,
  so actors normalize as the learner does. Only `update` changes them.

  `DiscreteArray`s, booleans and, by default, images (rank 3) are unchanged. So
  is the previous action, which `ObservationTorso` scales by its bounds.
  """

  def __init__(
    self,
    observation_spec: types.Nest,
    max_abs_value: float = 10.0,
    *,
    with_images: bool = False,
    name: str = 'observation_normalizer',
  ):
    """Creates the statistics, with mean 0 and deviation 1 before any `update`.

    Args:
      observation_spec: Nest of array specs, without a batch axis.
      max_abs_value: Limit to which normalized values are clipped.
      with_images: Whether to normalize images, too, each pixel separately.
    """
    super().__init__(name=name)
    self._leaves_of = nests.flattener(observation_spec)
    self._unflatten = nests.Unflattener(observation_spec)
    self._max_abs_value = max_abs_value
    leaf_specs = tree.flatten(observation_spec)
    are_actions = previous_actions.find(observation_spec)
    self._indices = [
      i
      for i, leaf_spec in enumerate(leaf_specs)
      if _is_normalized(leaf_spec, with_images) and not are_actions[i]
    ]
    # In double precision: float32 cannot count beyond 2²⁴.
    self._count = _make_variable(np.zeros([]), 'count')
    shapes = [leaf_specs[i].shape for i in self._indices]
    self._means = [_make_variable(np.zeros(s), 'mean') for s in shapes]
    self._variances = [_make_variable(np.ones(s), 'variance') for s in shapes]

  @property
  def is_initialized(self) -> tf.Tensor:
    """Whether `update` has seen any observation, a bool."""
    return self._count > 0

  def __call__(self, observation: types.Nest) -> types.Nest:
    """Normalizes observations `[B, ...]`.

    Args:
      observation: Nest of the structure of the spec.

    Returns:
      The observation, with normalized leaves as float32.
    """
    leaves = self._leaves_of(observation)
    statistics = zip(self._indices, self._means, self._variances)
    for i, mean, variance in statistics:
      # In double precision: the mean may be much larger than the deviation.
      shifted = tf.cast(leaves[i], tf.float64) - mean
      normalized = tf.cast(
        shifted * tf.math.rsqrt(variance + _MIN_VARIANCE), tf.float32
      )
      leaves[i] = tf.clip_by_value(
        normalized, -self._max_abs_value, self._max_abs_value
      )
    return self._unflatten(leaves)

  def update(self, observation: types.Nest, mask: tf.Tensor) -> None:
    """Updates mean and standard deviation with observations.

    Args:
      observation: Nest of `[T, B, ...]`.
      mask: Bool `[T, B]`, false for observations to ignore.
    """
    leaves = self._leaves_of(observation)
    before = tf.identity(self._count)
    for i, mean, variance in zip(self._indices, self._means, self._variances):
      merged = moments.merge(
        moments.Moments(before, mean, variance),
        moments.of_batch(leaves[i], mask),
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
