"""Interpretation of critic outputs of SAC: scalar values or quantiles.

Outputs of all critics are concatenated.
"""

from typing import NamedTuple

import sonnet as snt
import tensorflow as tf

from repertory.agents.sac import config as sac_config
from repertory.components import learners, losses


class Errors(NamedTuple):
  """Losses and TD errors of critics.

  Attributes:
    losses: Loss of each item, summed over critics, `[B]`.
    sizes: Absolute TD error of each item, averaged over critics, `[B]`.
  """

  losses: tf.Tensor
  sizes: tf.Tensor


class Values:
  """Scalar values of N critics, with their minimum as target."""

  def __init__(self, config: sac_config.SACConfig, noise: learners.UpdateNoise):
    """Initializes the interpretation, with noise to choose random critics."""
    self._config = config
    self._noise = noise

  def of_target(self, outputs: tf.Tensor) -> tf.Tensor:
    """Returns next-state values for targets, `[B, 1]`, from `[B, N]`."""
    return tf.reduce_min(self._drawn(outputs), axis=-1, keepdims=True)

  def of_policy(self, outputs: tf.Tensor) -> tf.Tensor:
    """Returns values for the policy loss, `[B]`, from outputs `[B, N]`."""
    if self._config.critics_of_policy == 'mean':
      return tf.reduce_mean(outputs, axis=-1)
    return tf.reduce_min(outputs, axis=-1)

  def of_each(self, outputs: tf.Tensor) -> tf.Tensor:
    """Returns the value of each critic, `[B, N]`, from outputs `[B, N]`."""
    return outputs

  def errors(self, outputs: tf.Tensor, targets: tf.Tensor) -> Errors:
    """Computes errors of outputs `[B, N]` to targets `[B, 1]`."""
    errors = targets - outputs  # [B, N]
    return Errors(
      0.5 * tf.reduce_sum(errors**2, axis=-1),
      tf.reduce_mean(tf.abs(errors), axis=-1),
    )

  def _drawn(self, q: tf.Tensor) -> tf.Tensor:
    """Returns values `[B, M]` of random critics, from `[B, N]` of all."""
    number = self._config.num_target_critics
    if number in (None, self._config.num_critics):
      return q
    keys = tf.random.stateless_uniform([q.shape[-1]], self._noise.seed())
    return tf.gather(q, tf.argsort(keys)[:number], axis=-1)


class Quantiles:
  """Truncated quantile critics (TQC): K quantiles of each of N critics.

  Values are means over quantiles, and the largest quantiles of targets are
  dropped: https://arxiv.org/abs/2005.04269.
  """

  def __init__(self, config: sac_config.SACConfig):
    """Initializes the numbers of critics and quantiles."""
    self._num_critics = config.num_critics
    self._num_quantiles = config.num_critic_outputs
    self._num_dropped = config.num_dropped_quantiles

  def of_target(self, outputs: tf.Tensor) -> tf.Tensor:
    """Returns next-state quantiles for targets, `[B, M]`, from `[B, N K]`."""
    return losses.truncated_quantiles(self._split(outputs), self._num_dropped)

  def of_policy(self, outputs: tf.Tensor) -> tf.Tensor:
    """Returns values for the policy loss, `[B]`, from outputs `[B, N K]`."""
    return tf.reduce_mean(outputs, axis=-1)

  def of_each(self, outputs: tf.Tensor) -> tf.Tensor:
    """Returns the value of each critic, `[B, N]`, from outputs `[B, N K]`."""
    return tf.reduce_mean(self._split(outputs), axis=-1)

  def errors(self, outputs: tf.Tensor, targets: tf.Tensor) -> Errors:
    """Computes errors of outputs `[B, N K]` to targets `[B, M]`."""
    taus = losses.quantile_midpoints(self._num_quantiles)[None]  # [1, K]
    quantiles = self._split(outputs)  # [B, N, K]
    critic_losses = [
      losses.quantile_huber(of_one, taus, targets, threshold=1.0)
      for of_one in tf.unstack(quantiles, axis=1)
    ]  # N times [B]
    mean = tf.reduce_mean(targets, axis=-1, keepdims=True)  # [B, 1]
    differences = mean - self.of_each(outputs)  # [B, N]
    return Errors(
      tf.add_n(critic_losses), tf.reduce_mean(tf.abs(differences), axis=-1)
    )

  def _split(self, outputs: tf.Tensor) -> tf.Tensor:
    return tf.reshape(outputs, [-1, self._num_critics, self._num_quantiles])


def make(
  config: sac_config.SACConfig, noise: learners.UpdateNoise
) -> Values | Quantiles:
  """Creates the interpretation for a config."""
  if config.num_quantiles is None:
    return Values(config, noise)
  return Quantiles(config)


def statistics(*critics: snt.Module | None) -> list[tf.Variable]:
  """Returns the non-trainable variables of critics, such as statistics."""
  return [
    variable
    for one in critics
    if one is not None
    for variable in one.variables
    if not variable.trainable
  ]
