"""Gaussian policies squashed into [−1, 1] by tanh."""

import math

import tensorflow as tf

# Limits of log σ: keep it finite, and actions from being pure noise.
_MIN_LOG_SCALE, _MAX_LOG_SCALE = -20.0, 2.0


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
    log_scale = tf.clip_by_value(unlimited, _MIN_LOG_SCALE, _MAX_LOG_SCALE)
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
