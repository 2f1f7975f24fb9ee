"""Gaussian distributions over continuous actions."""

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


class SquashedGaussian:
  """Independent Gaussians squashed by tanh, with their density.

  Samples a = tanh(u), u = μ + σ ε with ε ~ N(0, 1), are differentiable with
  respect to the parameters, the means μ and the log standard deviations log σ.
  By the change of variables

    log π(a) = Σ_i log N(u_i; μ_i, σ_i) − log(1 − tanh²(u_i)).

  See https://arxiv.org/abs/1812.05905, appendix C.

  Attributes:
    num_parameters: P = 2 D, for D action dimensions.
  """

  def __init__(self, size: int):
    self.num_parameters = 2 * size

  def sample(
    self, parameters: tf.Tensor, noise: tf.Tensor
  ) -> tuple[tf.Tensor, tf.Tensor]:
    """Transforms noise into samples and their log-probabilities.

    Args:
      parameters: `[B, P]`.
      noise: ε, standard normal numbers `[B, D]`; 0 gives the median action.

    Returns:
      Samples a, `[B, D]`, and log π(a), `[B]`.
    """
    mean, unlimited = tf.split(parameters, 2, axis=-1)  # [B, D]
    # Keeps log σ finite, and actions from being pure noise.
    log_scale = tf.clip_by_value(unlimited, -20.0, 2.0)
    unsquashed = mean + tf.exp(log_scale) * noise  # [B, D]
    # From the noise, because (u − μ) / σ rounds where σ is small.
    gaussian = -0.5 * noise**2 - log_scale - 0.5 * math.log(2 * math.pi)
    log_prob = tf.reduce_sum(gaussian - _log_slope(unsquashed), axis=-1)  # [B]
    return tf.tanh(unsquashed), log_prob


def _log_slope(unsquashed: tf.Tensor) -> tf.Tensor:
  """Computes log(1 − tanh²(u)), also where tanh rounds to ±1.

  1 − tanh²(u) = 4 / (e^u + e^−u)² = 4 e^(−2u) / (1 + e^(−2u))².
  """
  return 2 * (math.log(2) - unsquashed - tf.nn.softplus(-2 * unsquashed))


class BoundedGaussian:
  """Independent Gaussians N(tanh(m), σ²) with samples clipped to [−1, 1].

  Unlike those of a `SquashedGaussian`, densities are finite at the bounds and
  beyond, so every action of a data set has one. Densities ignore the clipping.
  See https://arxiv.org/abs/2110.06169 and the authors' code.

  Attributes:
    num_parameters: P = 2 D: m and log σ of D action dimensions.
  """

  def __init__(self, size: int):
    self.num_parameters = 2 * size

  def sample(self, parameters: tf.Tensor, noise: tf.Tensor) -> tf.Tensor:
    """Transforms `[B, P]` and normal noise `[B, D]` into samples `[B, D]`."""
    mean, scale = self._split(parameters)  # [B, D]
    return tf.clip_by_value(mean + scale * noise, -1.0, 1.0)

  def log_prob(self, parameters: tf.Tensor, action: tf.Tensor) -> tf.Tensor:
    """Computes log π(a), `[B]`, of parameters `[B, P]` and actions `[B, D]`."""
    return losses.gaussian_log_prob(action, *self._split(parameters))

  def _split(self, parameters: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns means and standard deviations, `[B, D]` each."""
    unlimited, log_scale = tf.split(parameters, 2, axis=-1)
    # The limits are those of the IQL authors' code.
    log_scale = tf.clip_by_value(log_scale, -5.0, 2.0)
    return tf.tanh(unlimited), tf.exp(log_scale)
