"""Gaussian policies whose means are within [−1, 1]."""

import tensorflow as tf

from repertory.components import losses

# Limits of log σ, as in the IQL authors' code.
_MIN_LOG_SCALE, _MAX_LOG_SCALE = -5.0, 2.0


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
    mean, log_scale = _split(parameters)  # [B, D]
    return tf.clip_by_value(mean + tf.exp(log_scale) * noise, -1.0, 1.0)

  def log_prob(self, parameters: tf.Tensor, action: tf.Tensor) -> tf.Tensor:
    """Computes log π(a), `[B]`, of parameters `[B, P]` and actions `[B, D]`."""
    mean, log_scale = _split(parameters)  # [B, D]
    return losses.gaussian_log_prob(action, mean, tf.exp(log_scale))


def _split(parameters: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
  """Returns means and clipped log standard deviations, `[B, D]` each."""
  unlimited, log_scale = tf.split(parameters, 2, axis=-1)
  log_scale = tf.clip_by_value(log_scale, _MIN_LOG_SCALE, _MAX_LOG_SCALE)
  return tf.tanh(unlimited), log_scale
