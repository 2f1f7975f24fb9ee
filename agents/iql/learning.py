"""Builder and update of IQL."""

from typing import NamedTuple

import sonnet as snt
import tensorflow as tf

from repertory.agents.actor_critic import exploration, policy_and_critic
from repertory.agents.iql import config as iql_config
from repertory.agents.replay import experience_replay
from repertory.components import (
  distributions,
  interfaces,
  learners,
  losses,
  networks,
  specs,
  types,
)
from repertory.components.actions import action_scaling
from repertory.components.runtime import data_parallel


class IQLBuilder(experience_replay.TransitionReplayBuilder):
  """Implicit Q-learning (IQL).

  See https://arxiv.org/abs/2110.06169. The builder's network is the policy; the
  update creates value network and critics.
  """

  config: iql_config.IQLConfig

  def make_network(self, spec):
    return networks.make_bounded_gaussian_network(
      spec, self.config.hidden_sizes, self.config.image_torso
    )

  def make_value_network(self, spec: specs.EnvironmentSpec) -> snt.Module:
    """Creates a network that maps observations to values, `[B, 1]`."""
    config, head = self.config, snt.Linear(1, name='value')
    return networks.make_sequential(
      spec.observations, config.hidden_sizes, config.image_torso, head
    )

  def make_critics(self, spec: specs.EnvironmentSpec) -> networks.Critic:
    """Creates critics; also called for the target critics."""
    return policy_and_critic.make_critics(spec, self.config)

  def make_policy(self, network, acting) -> interfaces.Policy:
    return exploration.make_bounded_gaussian_policy(network, acting)

  def make_update(self, network, spec):
    learned = IQLNetworks(
      network, self.make_value_network(spec), self.make_critics(spec)
    )
    update = IQLUpdate(
      learned,
      self.make_critics(spec),
      action_scaling.ActionScaling(spec.actions),
      self.config,
    )
    return experience_replay.in_series(update, self.config)


class IQLNetworks(NamedTuple):
  """Networks of IQL.

  Attributes:
    policy: Maps observations to parameters of a `BoundedGaussian`, `[B, P]`.
    value: Maps observations to values `[B, 1]`.
    critics: Map observations and actions `[B, D]` to values `[B, N]`.
  """

  policy: snt.Module
  value: snt.Module
  critics: networks.Critic


class IQLUpdate(experience_replay.ReplayUpdate):
  """IQL: expectile value loss, advantage-weighted cloning, and TD learning.

  Updates value, policy and critics, in the order of the authors' code. See
  https://arxiv.org/abs/2110.06169, algorithm 1. No out-of-distribution action
  is ever evaluated. Critics take actions scaled to [−1, 1].
  """

  def __init__(
    self,
    learned: IQLNetworks,
    target_critics: networks.Critic,
    scaling: action_scaling.ActionScaling,
    config: iql_config.IQLConfig,
  ):
    super().__init__(learned.policy, config)
    self._learned = learned
    self._target_critics = target_critics
    self._scaling = scaling
    self._distribution = distributions.BoundedGaussian(scaling.size)
    self._value_optimizer, self._critic_optimizer = (
      learners.ClippedAdam.from_config(network, config)
      for network in (learned.value, learned.critics)
    )
    self._policy_rate = tf.Variable(
      float(config.learning_rate), trainable=False, name='policy_rate'
    )
    self._policy_optimizer = learners.ClippedAdam.from_config(
      learned.policy, config, self._policy_rate
    )
    self._annealing = learners.CosineAnnealing(
      config.policy_anneal_learner_steps
    )
    self._update_target = learners.SoftUpdate(
      learned.critics.variables,
      target_critics.variables,
      config.target_update_rate,
    )

  def _improve(self, sample, weights):
    data = sample.data
    action = self._scaling.from_action(data.action)  # [B, D]
    target_critics = data_parallel.split_rows(self._target_critics)
    q = tf.reduce_min(target_critics(data.observation, action), -1)  # [B]
    value_metrics = self._improve_value(data.observation, q, weights)
    policy_metrics = self._improve_policy(data.observation, action, q)
    critic_metrics, sizes = self._improve_critics(data, action, weights)
    self._update_target()
    return {**value_metrics, **policy_metrics, **critic_metrics}, sizes

  def _value(self, observation: types.Nest) -> tf.Tensor:
    """Returns state values, `[B]`."""
    value = data_parallel.split_rows(self._learned.value)
    return tf.squeeze(value(observation), axis=-1)

  def _improve_value(
    self, observation: types.Nest, q: tf.Tensor, weights: tf.Tensor
  ) -> dict[str, tf.Tensor]:
    with tf.GradientTape() as tape:
      value = self._value(observation)  # [B]
      per_item = losses.expectile_losses(
        q - value, self._config.expectile
      )  # [B]
      loss = tf.reduce_mean(weights * per_item)
    norm = self._value_optimizer.minimize(tape, loss)
    return {
      'value_loss': loss,
      'value': tf.reduce_mean(value),
      'value_gradient_norm': norm,
    }

  def _improve_policy(
    self, observation: types.Nest, action: tf.Tensor, q: tf.Tensor
  ) -> dict[str, tf.Tensor]:
    advantages = q - self._value(observation)  # [B]
    weights = losses.exponential_weights(
      advantages, self._config.advantage_scale, self._config.max_weight
    )  # [B]
    self._policy_rate.assign(self._config.learning_rate * self._annealing())
    policy = data_parallel.split_rows(self._learned.policy)
    with tf.GradientTape() as tape:
      log_prob = self._distribution.log_prob(policy(observation), action)  # [B]
      loss = losses.weighted_cloning_loss(log_prob, weights)
    norm = self._policy_optimizer.minimize(tape, loss)
    return {
      'policy_loss': loss,
      'advantage': tf.reduce_mean(advantages),
      'weight': tf.reduce_mean(weights),
      'policy_gradient_norm': norm,
    }

  def _improve_critics(
    self, data: types.Transition, action: tf.Tensor, weights: tf.Tensor
  ) -> tuple[dict[str, tf.Tensor], tf.Tensor]:
    # The adder applied γ between the rewards; this is the last factor.
    discount = self._config.discount * data.discount  # [B]
    targets = data.reward + discount * self._value(data.next_observation)  # [B]
    return policy_and_critic.update_critics(
      self._learned.critics,
      self._critic_optimizer,
      data.observation,
      action,
      targets,
      weights,
    )
