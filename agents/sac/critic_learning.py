"""Critic learning of SAC: scalar values or quantiles, with CQL as an option."""

import math
from collections.abc import Callable
from typing import NamedTuple

import sonnet as snt
import tensorflow as tf
import tree

from repertory.agents.actor_critic import additional_loss as additional
from repertory.agents.sac import config as sac_config
from repertory.components import learners, losses, networks, types
from repertory.components.runtime import data_parallel


class Sampled(NamedTuple):
  """Actions sampled in states, `[B, D]`, or P in each, `[B, P, D]`.

  Attributes:
    action: In [−1, 1].
    log_prob: Log-densities of their sampling distributions, `[B]` or `[B, P]`.
  """

  action: tf.Tensor
  log_prob: tf.Tensor


def propose(
  parameters: tuple[tf.Tensor, tf.Tensor],
  sample: Callable[[tf.Tensor, tf.Tensor], tuple[tf.Tensor, tf.Tensor]],
  noise: learners.UpdateNoise,
  number: int,
  size: int,
) -> Sampled:
  """Samples actions uniformly and from the policy in current and next states.

  See https://arxiv.org/abs/2006.04779, appendix F. There are `number` of `size`
  dimensions from each of the three; `sample` maps policy parameters and noise
  `[B, D]` to actions `[B, D]` and their log π `[B]`.
  """
  batch_size = tf.shape(parameters[0])[0]
  uniforms = noise.uniforms([batch_size, number, size])
  actions = [2 * uniforms - 1]
  log_probs = [tf.fill([batch_size, number], -size * math.log(2))]
  for each in parameters:
    action, log_prob = sample(
      tf.repeat(each, number, axis=0),
      noise.normals([batch_size * number, size]),
    )
    actions.append(tf.reshape(action, [-1, number, size]))
    log_probs.append(tf.reshape(log_prob, [-1, number]))
  return Sampled(tf.concat(actions, axis=1), tf.concat(log_probs, axis=1))


class Errors(NamedTuple):
  """Losses and TD errors of critics.

  Attributes:
    losses: Loss of each item, summed over critics, `[B]`.
    sizes: Absolute TD error of each item, averaged over critics, `[B]`.
  """

  losses: tf.Tensor
  sizes: tf.Tensor


class Values:
  """Scalar values of N critics, with their minimum as target.

  Outputs of all critics are concatenated. Noise chooses random critics.
  """

  def __init__(self, config: sac_config.SACConfig, noise: learners.UpdateNoise):
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


def make_values(
  config: sac_config.SACConfig, noise: learners.UpdateNoise
) -> Values | Quantiles:
  """Creates the interpretation for a config."""
  if config.num_quantiles is None:
    return Values(config, noise)
  return Quantiles(config)


class CriticLearning(tf.Module):
  """Critics with targets, loss and optimizer.

  Without target critics, current and next states form one batch (CrossQ):
  https://arxiv.org/abs/1902.05605, section 3. Critics map observations and
  actions `[B, D]` to outputs `[B, N K]`.
  """

  def __init__(
    self,
    critics: networks.CriticEnsemble,
    target_critics: networks.CriticEnsemble | None,
    config: sac_config.SACConfig,
    noise: learners.UpdateNoise,
  ):
    super().__init__()
    self._critics = critics
    self._target_critics = target_critics
    self._config = config
    self._noise = noise
    self._values = make_values(config, noise)
    self._optimizer = learners.ClippedAdam.from_config(
      critics, config, first_decay=config.adam_first_decay
    )
    self._update_target = None
    if target_critics is not None and config.target_update_rate is not None:
      self._update_target = learners.SoftUpdate(
        critics.variables, target_critics.variables, config.target_update_rate
      )

  @property
  def critics(self) -> networks.CriticEnsemble:
    """The online critics."""
    return self._critics

  @property
  def statistics(self) -> list[tf.Variable]:
    """Non-trainable variables of the critics."""
    return statistics(self._critics, self._target_critics)

  def improve(
    self,
    data: types.Transition,
    action: tf.Tensor,
    following: Sampled,
    temperature: tf.Tensor,
    weights: tf.Tensor,
    proposals: Sampled | None = None,
    additional_loss: Callable[
      [], tuple[tf.Tensor | float, dict[str, tf.Tensor]]
    ] = lambda: (0.0, {}),
  ) -> tuple[dict[str, tf.Tensor], tf.Tensor]:
    """Takes a gradient step on the critic loss.

    Args:
      data: Transitions.
      action: Actions taken, scaled to [−1, 1], `[B, D]`.
      following: Sampled actions in the next states.
      temperature: α, a scalar.
      weights: Importance weights, `[B]`.
      proposals: Actions of the CQL regularizer; None for none.
      additional_loss: Function of the additional loss and its metrics.

    Returns:
      Metrics, and the absolute TD error of each item, `[B]`.
    """
    with tf.GradientTape() as tape:
      q_tm1, q_t = self._rate(data, action, following.action)  # [B, N K]
      targets = losses.soft_q_targets(
        r_t=data.reward,
        # The adder applied γ between the rewards; this is the last factor.
        discount_t=self._config.discount * data.discount,
        q_t=self._values.of_target(q_t),
        log_prob_t=following.log_prob,
        temperature=temperature,
      )  # [B, M]
      errors = self._values.errors(q_tm1, targets)
      loss = tf.reduce_mean(weights * errors.losses)
      total, more = loss, {}
      if proposals is not None:
        gaps = self._gaps(data.observation, q_tm1, proposals)  # [B, N]
        gap = tf.reduce_mean(weights * tf.reduce_sum(gaps, axis=-1))
        total = loss + self._config.conservative_weight * gap
        more = {'conservative_gap': tf.reduce_mean(gaps)}
      added, added_metrics = additional_loss()
      total += added
    norm = self._optimizer.minimize(tape, total)
    metrics = {
      **more,
      'critic_loss': loss,
      'td_error': tf.reduce_mean(errors.sizes),
      'q_value': tf.reduce_mean(q_tm1),
      'critic_gradient_norm': norm,
    }
    return additional.merge(metrics, added_metrics), errors.sizes

  def value(self, observation: types.Nest, action: tf.Tensor) -> tf.Tensor:
    """Returns the values of actions `[B, D]` for the policy loss, `[B]`."""
    critics = data_parallel.split_rows(self._critics)
    return self._values.of_policy(
      critics(observation, action, *self._dropout(action))
    )

  def update_target(self) -> None:
    """Updates the target critics, if any."""
    if self._update_target is not None:
      self._update_target()

  def _rate(
    self, data: types.Transition, action_tm1: tf.Tensor, action_t: tf.Tensor
  ) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns outputs for current and next actions, `[B, N K]` each."""
    if self._target_critics is None:
      both = tree.map_structure(
        lambda *leaves: tf.concat(leaves, axis=0),
        (data.observation, action_tm1),
        (data.next_observation, action_t),
      )  # [2 B, ...]
      with networks.batch_statistics():
        outputs = self._critics(*both, *self._dropout(both[1]))  # [2 B, N K]
      return tuple(tf.split(outputs, 2))
    target_critics = data_parallel.split_rows(self._target_critics)
    q_t = target_critics(
      data.next_observation, action_t, *self._dropout(action_t)
    )
    critics = data_parallel.split_rows(self._critics)
    with networks.batch_statistics():
      q_tm1 = critics(data.observation, action_tm1, *self._dropout(action_tm1))
    return q_tm1, q_t

  def _gaps(
    self,
    observation: types.Nest,
    q_tm1: tf.Tensor,
    proposals: Sampled,
  ) -> tf.Tensor:
    """Returns the CQL regularizers of each item and critic, `[B, N]`."""
    action = proposals.action  # [B, P, D]
    critics = data_parallel.split_rows(self._critics)
    outputs = critics(observation, action, *self._dropout(action))
    q = tf.reshape(
      self._values.of_each(outputs),
      [-1, action.shape[1], self._config.num_critics],
    )  # [B, P, N]
    gaps = [
      losses.conservative_q_loss(of_one, proposals.log_prob, q_data)
      for of_one, q_data in zip(
        tf.unstack(q, axis=-1), tf.unstack(self._values.of_each(q_tm1), axis=-1)
      )
    ]
    return tf.stack(gaps, axis=-1)

  def _dropout(self, action: tf.Tensor) -> list[tf.Tensor]:
    """Returns new dropout masks of the critics' layers, if any.

    They are `[B, N, S]` for actions `[B, D]`, and `[B, P, N, S]` for actions
    `[B, P, D]`. Entries are 0 at `dropout_rate`, and otherwise scaled to a mean
    of 1.
    """
    rate = self._config.dropout_rate
    if not rate:
      return []
    _, sizes = self._config.critic_layers
    rows = tf.unstack(tf.shape(action)[:-1])
    uniforms = self._noise.uniforms(
      [*rows, self._config.num_critics, sum(sizes)]
    )
    return [tf.cast(uniforms >= rate, tf.float32) / (1 - rate)]


def statistics(*critics: snt.Module | None) -> list[tf.Variable]:
  """Returns the non-trainable variables of critics, such as statistics."""
  return [
    variable
    for one in critics
    if one is not None
    for variable in one.variables
    if not variable.trainable
  ]
