"""The update of DQN."""

import sonnet as snt
import tensorflow as tf

from repertory.agents import experience_replay
from repertory.agents.dqn import config as dqn_config
from repertory.components import (
  data_parallel,
  discrete_actions,
  learners,
  losses,
  programs,
  types,
)


class DQNUpdate(programs.Update):
  """Lowers the Huber loss of the n-step, double Q-learning errors."""

  def __init__(
    self,
    network: snt.Module,
    target_network: snt.Module,
    config: dqn_config.DQNConfig,
    actions: discrete_actions.DiscreteActions | None = None,
  ):
    """Takes over the networks.

    Args:
      network: What is learned: observations `[B, ...]` to values `[B, A]`.
      target_network: One of the same kind, made to follow.
      config: The settings.
      actions: Numbers the environment's actions; None if they are numbers.
    """
    super().__init__()
    self._network = network
    self._target_network = target_network
    self._to_number = actions.from_action if actions else lambda action: action
    self._config = config
    self._optimizer = learners.ClippedAdam(
      network.trainable_variables,
      config.learning_rate,
      config.adam_epsilon,
      config.max_gradient_norm,
    )
    self._importance_weights = experience_replay.ImportanceWeights(config)
    self._update_target = learners.PeriodicCopy(
      network.variables, target_network.variables, config.target_update_period
    )

  @property
  def exports(self):
    return {'policy': self._network.variables}

  def __call__(self, sample: types.Sample) -> programs.UpdateResult:
    with tf.GradientTape() as tape:
      errors, q_tm1 = self._errors(sample.data)  # [B], [B, A]
      losses_per_item = losses.huber(errors, self._config.huber_threshold)
      weights = self._importance_weights(sample)
      loss = tf.reduce_mean(weights * losses_per_item)
    norm = self._optimizer.minimize(tape, loss)
    self._update_target()
    sizes = tf.abs(errors)
    metrics = {
      'loss': loss,
      'td_error': tf.reduce_mean(sizes),
      'q_value': tf.reduce_mean(q_tm1),
      'gradient_norm': norm,
    }
    return programs.UpdateResult(
      metrics, priorities=sizes if self._config.prioritized else None
    )

  def _errors(self, data: types.Transition) -> tuple[tf.Tensor, tf.Tensor]:
    values = data_parallel.by_rows(self._network)
    target_values = data_parallel.by_rows(self._target_network)
    q_tm1 = values(data.observation)  # [B, A]
    q_t_value = target_values(data.next_observation)  # [B, A]
    q_t_selector = (
      values(data.next_observation) if self._config.double else q_t_value
    )
    errors = losses.double_q_errors(
      q_tm1=q_tm1,
      a_tm1=self._to_number(data.action),
      r_t=data.reward,
      # The adder applied γ between the rewards; this is the last factor.
      discount_t=self._config.discount * data.discount,
      q_t_value=q_t_value,
      q_t_selector=q_t_selector,
    )
    return errors, q_tm1
