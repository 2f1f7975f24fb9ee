"""Cross-entropy method: sample-based maximization over actions."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import tensorflow as tf


class Maximum(NamedTuple):
  """The best samples found, in [−1, 1], `[B, D]`, and their values, `[B]`."""

  action: tf.Tensor
  value: tf.Tensor


def maximize(
  rate: Callable[[tf.Tensor], tf.Tensor],
  noise: tf.Tensor,
  num_elites: int,
  initial_stddev: float,
) -> Maximum:
  """Maximizes values by Gaussians, each fitted to the elites of the last one.

  The cross-entropy method: https://doi.org/10.1023/A:1010091220143. Used by
  QT-Opt to maximize Q-values over actions: https://arxiv.org/abs/1806.10293,
  section 4.3. The first Gaussian has mean 0; samples are clipped to [−1, 1].

  Args:
    rate: Maps actions `[B, N, D]` to values `[B, N]`.
    noise: Standard normal numbers, `[I, B, N, D]`: N samples in each of I
      iterations. B may be 1 for the same numbers in every row.
    num_elites: Number of samples the next Gaussian is fitted to, at most N.
    initial_stddev: Standard deviation of the first Gaussian.

  Returns:
    The best sample of the last iteration, without gradients.
  """
  mean, stddev = tf.zeros_like(noise[0, :, :1]), initial_stddev
  found = Maximum(mean[:, 0], mean[:, 0, 0])
  for numbers in tf.unstack(noise):
    samples = tf.clip_by_value(mean + stddev * numbers, -1.0, 1.0)
    values = rate(samples)  # [B, N]
    best, places = tf.math.top_k(values, num_elites)  # [B, M]
    # Broadcast shared noise to all rows.
    samples = tf.broadcast_to(
      samples, tf.concat([tf.shape(values), tf.shape(samples)[2:]], axis=0)
    )
    elites = tf.gather(samples, places, batch_dims=1)  # [B, M, D]
    found = Maximum(elites[:, 0], best[:, 0])
    mean = tf.reduce_mean(elites, axis=1, keepdims=True)  # [B, 1, D]
    stddev = tf.math.reduce_std(elites, axis=1, keepdims=True)  # [B, 1, D]
  return Maximum(*map(tf.stop_gradient, found))


def fixed_noise(num_iterations: int, num_samples: int, size: int) -> np.ndarray:
  """Returns standard normal numbers that are the same in every call.

  They are float32 `[I, 1, N, D]`, and make the search a deterministic function
  of the values.
  """
  shape = [num_iterations, 1, num_samples, size]
  return np.random.default_rng(0).standard_normal(shape, np.float32)
