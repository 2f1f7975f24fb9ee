"""Builder and update of D4PG."""

import tensorflow as tf

from repertory.agents.actor_critic import exploration, policy_and_critic
from repertory.agents.d4pg import config as d4pg_config
from repertory.components import interfaces, losses, networks, types
from repertory.components.actions import action_scaling


class D4PGUpdate(policy_and_critic.CategoricalCriticUpdate):
  """D4PG: categorical TD learning and deterministic policy gradient.

  See https://arxiv.org/abs/1804.08617, algorithm 1. The critic takes actions
  scaled to [−1, 1], as the policy has them, `[B, D]`, and has logits `[B, N]`.
  """

  def _improve(self, sample, weights):
    data = sample.data
    # The policy first, by the critic before this step.
    policy_metrics = self._improve_policy(data)
    critic_metrics, divergences = self._improve_critic(
      data,
      self._actions.from_action(data.action),
      self._target_policy(data.next_observation),
      weights,
    )
    self._update_target()
    return {**critic_metrics, **policy_metrics}, divergences

  def _improve_policy(self, data: types.Transition) -> dict:
    with tf.GradientTape() as policy_tape:
      action = self._policy(data.observation)  # [B, D]
      with tf.GradientTape() as action_tape:
        action_tape.watch(action)
        q = self._values(data.observation, action)  # [B]
      dqda = action_tape.gradient(q, action)  # [B, D]
      loss = losses.deterministic_policy_loss(
        action, dqda, self._config.max_action_gradient_norm
      )
    norm = self._policy_optimizer.minimize(policy_tape, loss)
    return {
      'policy_value': tf.reduce_mean(q),
      'policy_gradient_norm': norm,
    }


class D4PGBuilder(policy_and_critic.CategoricalCriticBuilder):
  """Distributed distributional deterministic policy gradients (D4PG).

  See https://arxiv.org/abs/1804.08617. The builder's network is the policy.
  """

  config: d4pg_config.D4PGConfig
  update_class = D4PGUpdate

  def make_network(self, spec):
    size = action_scaling.ActionScaling(spec.actions).size
    return networks.make_sequential(
      spec.observations,
      (),
      self.config.image_torso,
      networks.LayerNormMLP(self.config.hidden_sizes),
      networks.make_policy_head(size),
      tf.tanh,
    )

  def make_policy(self, network, acting) -> interfaces.Policy:
    return exploration.make_deterministic_policy(
      network, self.config.sigma, acting
    )
