"""Diagonal Gaussian distributions over continuous actions."""

import math

import numpy as np
import tensorflow as tf

from repertory.components import losses, specs
from repertory.components.actions import action_parts
from repertory.components.distributions import distribution
from repertory.components.runtime import random_streams

# Smallest standard deviation, which keeps log-probabilities finite.
_MIN_SCALE = 1e-3
# softplus⁻¹(½): a parameter of 0 gives a deviation of ½, plus the smallest one.
_SHIFT = math.log(math.expm1(0.5))


class DiagonalGaussian(distribution.Distribution):
  """Diagonal Gaussian, parameterized by means and unscaled deviations.

  A sample of 0 is the center of the bounds, and ±1 are the bounds. Samples out
  of bounds become clipped actions, but keep their own log-probability.
  Actions without one of the bounds, or both, equal their samples.
  """

  kl_parts = ('mean', 'stddev')

  def __init__(self, action_spec: specs.Array):
    size = int(np.prod(action_spec.shape))
    self.num_parameters = 2 * size
    self.sample_spec = specs.Array(action_spec.shape, np.float32)
    self._shape = list(action_spec.shape)
    self._dtype = tf.as_dtype(action_spec.dtype)
    self._minimum, self._maximum = action_parts.bounds(action_spec)
    self._middle, self._half_width = action_parts.scale_of(action_spec)

  def sample(self, parameters, counters):
    mean, scale = self._split(parameters)  # [B, D]
    noise, counters = random_streams.next_normals(counters, mean.shape[-1])
    return self._shaped(mean + scale * noise), counters

  def mode(self, parameters):
    return self._shaped(self._split(parameters)[0])

  def log_prob(self, parameters, sample):
    mean, scale = self._split(parameters)  # [..., D]
    flat = tf.reshape(sample, tf.shape(mean))
    return losses.gaussian_log_prob(flat, mean, scale)

  def entropy(self, parameters):
    return losses.gaussian_entropy(self._split(parameters)[1])

  def kl(self, parameters, others):
    mean, scale = self._split(parameters)  # [..., D]
    other_mean, other_scale = self._split(others)
    moved = losses.gaussian_kl(mean, scale, other_mean, scale)
    scaled = losses.gaussian_kl(mean, scale, mean, other_scale)
    return {
      'mean': tf.reduce_sum(moved, axis=-1),
      'stddev': tf.reduce_sum(scaled, axis=-1),
    }

  def to_action(self, sample):
    scaled = self._middle + self._half_width * tf.cast(sample, tf.float64)
    clipped = tf.clip_by_value(scaled, self._minimum, self._maximum)
    return tf.cast(clipped, self._dtype)

  def _split(self, parameters: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns means and standard deviations, `[..., D]` each."""
    mean, unscaled = tf.split(parameters, 2, axis=-1)
    return mean, tf.nn.softplus(unscaled + _SHIFT) + _MIN_SCALE

  def _shaped(self, flat: tf.Tensor) -> tf.Tensor:
    return tf.reshape(flat, [-1, *self._shape])
