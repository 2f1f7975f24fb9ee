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
  Unbounded actions equal their samples. So do actions with one bound, if 0 is
  valid and at least 1 away from the bound; otherwise samples are shifted such
  that 0 becomes the action at a distance of 1 inside the bound.
  """

  kl_parts = ('mean', 'stddev')

  def __init__(self, action_spec: specs.Array):
    size = int(np.prod(action_spec.shape))
    self.num_parameters = 2 * size
    self.sample_spec = specs.Array(action_spec.shape, np.float32)
    self._shape = list(action_spec.shape)
    self._dtype = tf.as_dtype(action_spec.dtype)
    self._minimum, self._maximum = action_parts.inward_bounds(action_spec)
    middle, self._half_width = action_parts.scale_of(action_spec)
    # With a single bound, 0 and most initial samples might be out of bounds.
    is_one_sided = np.isfinite(self._minimum) != np.isfinite(self._maximum)
    inside = np.minimum(np.maximum(0, self._minimum + 1), self._maximum - 1)
    self._middle = np.where(is_one_sided, inside, middle)

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
