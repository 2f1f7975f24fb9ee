"""What the critics of SAC tell, and how they learn it.

Critics give their outputs side by side; a rule knows what these are. There is
one for values and one for quantiles.
"""

from typing import NamedTuple

import sonnet as snt
import tensorflow as tf

from repertory.agents.sac import config as sac_config
from repertory.components import learners, losses


class Errors(NamedTuple):
  """How far critics are from targets.

  Attributes:
    losses: The loss of each item, summed over the critics, `[B]`.
    sizes: The mean over the critics of the errors in their values, `[B]`.
  """

  losses: tf.Tensor
  sizes: tf.Tensor


class Values:
  """Each of N critics tells a value; the least of them counts."""

  def __init__(self, config: sac_config.SACConfig, noise: learners.UpdateNoise):
    """Keeps what it draws critics by."""
    self._config = config
    self._noise = noise

  def of_target(self, outputs: tf.Tensor) -> tf.Tensor:
    """Returns what targets are made of, `[B, 1]`, from outputs `[B, N]`."""
    return tf.reduce_min(self._drawn(outputs), axis=-1, keepdims=True)

  def of_policy(self, outputs: tf.Tensor) -> tf.Tensor:
    """Returns the values that the policy follows, `[B]`, of `[B, N]`."""
    if self._config.critics_of_policy == 'mean':
      return tf.reduce_mean(outputs, axis=-1)
    return tf.reduce_min(outputs, axis=-1)

  def of_each(self, outputs: tf.Tensor) -> tf.Tensor:
    """Returns the value that each critic tells, `[B, N]`, of `[B, N]`."""
    return outputs

  def errors(self, outputs: tf.Tensor, targets: tf.Tensor) -> Errors:
    """Compares outputs `[B, N]` with targets `[B, 1]`."""
    errors = targets - outputs  # [B, N]
    return Errors(
      0.5 * tf.reduce_sum(errors**2, axis=-1),
      tf.reduce_mean(tf.abs(errors), axis=-1),
    )

  def _drawn(self, q: tf.Tensor) -> tf.Tensor:
    """Returns the values `[B, M]` of some critics, of `[B, N]` of all."""
    number = self._config.num_target_critics
    if number in (None, self._config.num_critics):
      return q
    keys = tf.random.stateless_uniform([q.shape[-1]], self._noise.seed())
    return tf.gather(q, tf.argsort(keys)[:number], axis=-1)


class Quantiles:
  """Each of N critics tells K quantiles of a return; their mean counts.

  The largest quantiles of targets are left out, which makes the critics
  "truncated quantile critics": https://arxiv.org/abs/2005.04269.
  """

  def __init__(self, config: sac_config.SACConfig):
    """Keeps how many there are."""
    self._num_critics = config.num_critics
    self._num_quantiles = config.num_critic_outputs
    self._num_dropped = config.num_dropped_quantiles

  def of_target(self, outputs: tf.Tensor) -> tf.Tensor:
    """Returns what targets are made of, `[B, M]`, from outputs `[B, N K]`."""
    return losses.truncated_quantiles(self._split(outputs), self._num_dropped)

  def of_policy(self, outputs: tf.Tensor) -> tf.Tensor:
    """Returns the values that the policy follows, `[B]`, of `[B, N K]`."""
    return tf.reduce_mean(outputs, axis=-1)

  def of_each(self, outputs: tf.Tensor) -> tf.Tensor:
    """Returns the value that each critic tells, `[B, N]`, of `[B, N K]`."""
    return tf.reduce_mean(self._split(outputs), axis=-1)

  def errors(self, outputs: tf.Tensor, targets: tf.Tensor) -> Errors:
    """Compares outputs `[B, N K]` with targets `[B, M]`."""
    taus = losses.quantile_midpoints(self._num_quantiles)[None]  # [1, K]
    quantiles = self._split(outputs)  # [B, N, K]
    of_critics = [
      losses.quantile_huber(of_one, taus, targets, threshold=1.0)
      for of_one in tf.unstack(quantiles, axis=1)
    ]  # N times [B]
    mean = tf.reduce_mean(targets, axis=-1, keepdims=True)  # [B, 1]
    differences = mean - self.of_each(outputs)  # [B, N]
    return Errors(
      tf.add_n(of_critics), tf.reduce_mean(tf.abs(differences), axis=-1)
    )

  def _split(self, outputs: tf.Tensor) -> tf.Tensor:
    return tf.reshape(outputs, [-1, self._num_critics, self._num_quantiles])


def make(
  config: sac_config.SACConfig, noise: learners.UpdateNoise
) -> Values | Quantiles:
  """Returns the rule that a config asks for."""
  if config.num_quantiles is None:
    return Values(config, noise)
  return Quantiles(config)


def statistics(*critics: snt.Module | None) -> list[tf.Variable]:
  """Returns what normalized layers of critics know of their inputs."""
  return [
    variable
    for one in critics
    if one is not None
    for variable in one.variables
    if not variable.trainable
  ]
