"""Builder and update of TD3."""

import sonnet as snt
import tensorflow as tf

from repertory.agents.actor_critic import exploration, policy_and_critic
from repertory.agents.td3 import config as td3_config
from repertory.components import (
  interfaces,
  learners,
  losses,
  networks,
  specs,
  types,
)
from repertory.components.actions import action_scaling
from repertory.components.runtime import data_parallel


class TD3Update(policy_and_critic.PolicyAndCriticUpdate):
  """TD3: clipped double Q-learning, with delayed policy and target updates.

  See https://arxiv.org/abs/1802.09477, algorithm 1. Critics take actions scaled
  to [−1, 1], as the policy has them, `[B, D]`, and have values `[B, N]`.
  """

  def __init__(self, online, target, actions, config):
    super().__init__(online, target, actions, config)
    self._noise = learners.UpdateNoise()
    self._update_target = learners.SoftUpdate(
      online.variables, target.variables, config.target_update_rate
    )
    self._improve_policy_in_turn = learners.DelayedUpdate(
      self._improve_policy,
      ['policy_value', 'policy_gradient_norm'],
      config.policy_update_period,
    )

  def _improve(self, sample, weights):
    data = sample.data
    critic_metrics, sizes = self._improve_critics(data, weights)
    policy_metrics = self._improve_policy_in_turn(data)
    return {**critic_metrics, **policy_metrics}, sizes

  def _improve_critics(
    self, data: types.Transition, weights: tf.Tensor
  ) -> tuple[dict, tf.Tensor]:
    action_t = self._smooth(
      self._target_policy(data.next_observation)
    )  # [B, D]
    targets = losses.clipped_double_q_targets(
      r_t=data.reward,
      # The adder applied γ between the rewards; this is the last factor.
      discount_t=self._config.discount * data.discount,
      q_t=self._target_critic(data.next_observation, action_t),
    )  # [B]
    action_tm1 = self._actions.from_action(data.action)  # [B, D]
    return policy_and_critic.update_critics(
      self._online.critic,
      self._critic_optimizer,
      data.observation,
      action_tm1,
      targets,
      weights,
    )

  def _smooth(self, action: tf.Tensor) -> tf.Tensor:
    """Target policy smoothing: adds clipped noise to actions."""
    limit = self._config.target_noise_limit
    noise = self._config.target_sigma * self._noise.normals(tf.shape(action))
    noise = tf.clip_by_value(noise, -limit, limit)
    return tf.clip_by_value(action + noise, -1.0, 1.0)

  def _improve_policy(self, data: types.Transition) -> dict[str, tf.Tensor]:
    first_critic = data_parallel.split_rows(self._online.critic.first)
    alpha = self._config.behavior_cloning_alpha
    with tf.GradientTape() as tape:
      action = self._policy(data.observation)  # [B, D]
      q = tf.squeeze(first_critic(data.observation, action), axis=-1)  # [B]
      value = tf.reduce_mean(q)
      loss = -value
      if alpha is not None:
        cloned = self._actions.from_action(data.action)  # [B, D]
        loss = losses.td3_bc_policy_loss(q, action, cloned, alpha)
    # The gradient step changes only the policy, not the critics.
    norm = self._policy_optimizer.minimize(tape, loss)
    self._update_target()
    return {'policy_value': value, 'policy_gradient_norm': norm}


class TD3Builder(policy_and_critic.PolicyAndCriticBuilder):
  """Twin delayed deterministic policy gradient (TD3).

  See https://arxiv.org/abs/1802.09477. The builder's network is the policy.
  """

  config: td3_config.TD3Config
  update_class = TD3Update

  def make_network(self, spec):
    config = self.config
    head = snt.Linear(
      action_scaling.ActionScaling(spec.actions).size, name='head'
    )
    return networks.make_sequential(
      spec.observations, config.hidden_sizes, config.image_torso, head, tf.tanh
    )

  def make_critics(self, spec: specs.EnvironmentSpec) -> networks.Critic:
    """Creates critics; also called for the target critics."""
    return policy_and_critic.make_critics(spec, self.config)

  def make_critic(self, spec):
    return self.make_critics(spec)

  def make_policy(self, network, acting) -> interfaces.Policy:
    config = self.config
    return exploration.make_deterministic_policy(
      network,
      config.sigma,
      acting,
      config.num_random_steps,
      config.noise_correlation,
    )
