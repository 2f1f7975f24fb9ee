"""Learned temperature of SAC."""

import math

import tensorflow as tf

from repertory.agents.sac import config as sac_config
from repertory.components import learners, losses


class Temperature(tf.Module):
  """Temperature α, parameterized by log α; rises while entropy is below H̄."""

  def __init__(self, config: sac_config.SACConfig, target_entropy: float):
    """Creates the variable.

    Args:
      config: The config.
      target_entropy: H̄, the target entropy.
    """
    super().__init__()
    self._target_entropy = target_entropy
    self._log_temperature = tf.Variable(
      math.log(config.initial_temperature),
      dtype=tf.float32,
      name='log_temperature',
    )
    self._optimizer = learners.ClippedAdam(
      [self._log_temperature],
      config.temperature_learning_rate,
      config.adam_epsilon,
      config.max_gradient_norm,
    )

  def __call__(self) -> tf.Tensor:
    """Returns α, a scalar."""
    return tf.exp(self._log_temperature)

  def improve(self, log_prob: tf.Tensor) -> None:
    """Takes a gradient step, given log π of the policy's actions, `[B]`."""
    with tf.GradientTape() as tape:
      loss = losses.temperature_loss(self(), log_prob, self._target_entropy)
    self._optimizer.minimize(tape, loss)
