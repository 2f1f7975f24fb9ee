"""Running mean and variance of batches, and normalization by them."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import sonnet as snt
import tensorflow as tf
import tree

from repertory.components import specs, types
from repertory.components.networks import previous_actions
from repertory.components.runtime import nests, numpy_functions


class Moments(NamedTuple):
  """Mean and variance of a set of numbers.

  In double precision: after 10⁷ numbers, single precision would lose the next
  one.

  Attributes:
    size: Number of values, a scalar.
    mean: `[...]`.
    variance: Mean squared deviation from the mean, `[...]`.
  """

  size: tf.Tensor | tf.Variable
  mean: tf.Tensor | tf.Variable
  variance: tf.Tensor | tf.Variable


def of_batch(leaf: tf.Tensor, mask: tf.Tensor) -> Moments:
  """Computes the moments of `[T, B, ...]` over a mask; zeros if it is empty."""
  x = tf.cast(leaf, tf.float64)
  mask = tf.reshape(mask, [*mask.shape, *[1] * (len(x.shape) - 2)])
  count = tf.reduce_sum(tf.cast(mask, tf.float64))
  divisor = tf.maximum(count, 1)
  zeros = tf.zeros_like(x)
  mean = tf.reduce_sum(tf.where(mask, x, zeros), axis=[0, 1]) / divisor
  squares = tf.where(mask, (x - mean) ** 2, zeros)
  variance = tf.reduce_sum(squares, axis=[0, 1]) / divisor
  return Moments(count, mean, variance)


def merge(before: Moments, new: Moments) -> Moments:
  """Merges the moments of two disjoint sets of numbers.

  For n and m numbers whose means are δ apart, the mean is μ_n + δ m / (n + m)
  and the variance (n σ²_n + m σ²_m + δ² n m / (n + m)) / (n + m): see Chan et
  al., https://doi.org/10.1080/00031305.1983.10483115, equation 2.1. An empty
  second set changes nothing.
  """
  total = tf.maximum(before.size + new.size, 1)
  gap = new.mean - before.mean
  merged = (
    before.size * before.variance
    + new.size * new.variance
    + gap**2 * before.size * new.size / total
  ) / total
  return Moments(
    before.size + new.size,
    before.mean + gap * new.size / total,
    tf.where(new.size > 0, merged, before.variance),
  )


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
  ):
    """Creates the statistics, with mean 0 and deviation 1 before any `update`.

    Args:
      observation_spec: Nest of array specs, without a batch axis.
      max_abs_value: Limit to which normalized values are clipped.
      with_images: Whether to normalize images, too, each pixel separately.
    """
    super().__init__(name='observation_normalizer')
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
    """Normalizes observations `[B, ...]`, as float32."""
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

  def in_numpy(self, weights: numpy_functions.Weights) -> Callable:
    """Returns the NumPy version, see `numpy_functions`."""
    arrays, limit = weights.arrays, np.float32(self._max_abs_value)
    statistics = [
      (i, weights.add(mean), weights.add(variance))
      for i, mean, variance in zip(self._indices, self._means, self._variances)
    ]

    def call(leaves):
      leaves = list(leaves)
      for i, mean, variance in statistics:
        deviation = np.sqrt(arrays[variance] + _MIN_VARIANCE)
        normalized = ((leaves[i] - arrays[mean]) / deviation).astype(np.float32)
        leaves[i] = np.clip(normalized, -limit, limit)
      return leaves

    return call

  def update(self, observation: types.Nest, mask: tf.Tensor) -> None:
    """Adds observations `[T, B, ...]` where the mask `[T, B]` is true."""
    leaves = self._leaves_of(observation)
    before = tf.identity(self._count)
    for i, mean, variance in zip(self._indices, self._means, self._variances):
      new = of_batch(leaves[i], mask)
      merged = merge(Moments(before, mean, variance), new)
      mean.assign(merged.mean)
      variance.assign(merged.variance)
    self._count.assign_add(tf.reduce_sum(tf.cast(mask, tf.float64)))


class NormalizedNetwork(snt.Module):
  """Network whose observations are normalized, in calls, `step` and `unroll`.

  It has the other attributes of the network that it contains, unchanged. Its
  last variables are the statistics.

  Attributes:
    network: The network of normalized observations.
    normalizer: The normalizer, which `learners.NormalizedUpdate` updates.
  """

  def __init__(
    self, network: Callable[..., types.Nest], normalizer: ObservationNormalizer
  ):
    super().__init__(name='normalized_network')
    self.network: Any = network
    self.normalizer = normalizer

  def __call__(self, observation: types.Nest, *args: Any, **kwargs: Any) -> Any:
    return self.network(self.normalizer(observation), *args, **kwargs)

  def step(self, observation: types.Nest, *args: Any) -> Any:
    """Maps observations `[B, ...]` and state to outputs and the next state."""
    return self.network.step(self.normalizer(observation), *args)

  def unroll(self, observation: types.Nest, *args: Any) -> Any:
    """Unrolls a `SequenceNetwork` over sequences `[T, B, ...]`."""
    return self.network.unroll(self.normalizer(observation), *args)

  def in_numpy(self, weights: numpy_functions.Weights) -> Callable:
    """Returns the NumPy version, see `numpy_functions`."""
    normalize = self.normalizer.in_numpy(weights)
    evaluate = numpy_functions.forward(self.network, weights)
    return lambda leaves, *inputs: evaluate(normalize(leaves), *inputs)

  def __getattr__(self, name: str) -> Any:
    if name == 'network':
      raise AttributeError(name)
    return getattr(self.network, name)


def _is_normalized(spec: specs.Array, with_images: bool) -> bool:
  return (
    (with_images or len(spec.shape) < 3)
    and not isinstance(spec, specs.DiscreteArray)
    and np.issubdtype(spec.dtype, np.number)
  )


def _make_variable(value: np.ndarray, name: str) -> tf.Variable:
  return tf.Variable(value, trainable=False, dtype=tf.float64, name=name)
