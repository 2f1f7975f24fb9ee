"""Log-densities, entropies and KL divergences of policies, in nats."""

import math

import tensorflow as tf


def gaussian_log_prob(
  x: tf.Tensor, mean: tf.Tensor, scale: tf.Tensor
) -> tf.Tensor:
  """Log-density of a diagonal Gaussian, Σ_d log N(x_d; μ_d, σ_d), `[...]`.

  x is `[..., D]`; μ and σ > 0 broadcast to its shape.
  """
  errors = (x - mean) / scale
  terms = -0.5 * errors**2 - tf.math.log(scale) - 0.5 * math.log(2 * math.pi)
  return tf.reduce_sum(terms, axis=-1)


def gaussian_entropy(scale: tf.Tensor) -> tf.Tensor:
  """Gaussian entropy Σ_d ½ log(2 π e σ_d²), `[...]`, of scales `[..., D]`."""
  terms = tf.math.log(scale) + 0.5 * math.log(2 * math.pi * math.e)
  return tf.reduce_sum(terms, axis=-1)


def gaussian_kl(
  mean_p: tf.Tensor, scale_p: tf.Tensor, mean_q: tf.Tensor, scale_q: tf.Tensor
) -> tf.Tensor:
  """KL(p ‖ q) of independent Gaussians, for each dimension.

  With x = σ_p / σ_q − 1 it is

    ½ ((μ_p − μ_q) / σ_q)² + ½ x² + x − log(1 + x)

  which is the textbook's log(σ_q / σ_p) + (σ_p² + (μ_p − μ_q)²) / (2 σ_q²) − ½,
  but accurate in single precision for nearly equal deviations: KL bounds may be
  as small as 1e-6. All are `[..., D]`, with σ > 0.
  """
  x = (scale_p - scale_q) / scale_q
  moved = (mean_p - mean_q) / scale_q
  return 0.5 * moved**2 + 0.5 * x**2 + (x - tf.math.log1p(x))


def categorical_kl(logits_p: tf.Tensor, logits_q: tf.Tensor) -> tf.Tensor:
  """KL(p ‖ q) = Σ_i p_i (log p_i − log q_i), `[...]`, of logits `[..., A]`."""
  log_p, log_q = tf.nn.log_softmax(logits_p), tf.nn.log_softmax(logits_q)
  return tf.reduce_sum(tf.exp(log_p) * (log_p - log_q), axis=-1)
