"""Shared parts of off-policy actor-critic agents."""

import abc
from typing import Any, ClassVar, NamedTuple

import sonnet as snt
import tensorflow as tf

from repertory.agents.interface import agent_config
from repertory.agents.replay import experience_replay
from repertory.components import (
  interfaces,
  learners,
  losses,
  networks,
  specs,
  types,
)
from repertory.components.actions import (
  action_parts,
  action_scaling,
  discrete_actions,
)
from repertory.components.runtime import data_parallel


class Networks(NamedTuple):
  """Policy and critic networks, online or target.

  Attributes:
    policy: Maps observations `[B, ...]` to policy parameters `[B, P]`.
    critic: Critic module, whose interface depends on the agent.
  """

  policy: snt.Module
  critic: Any

  @property
  def variables(self) -> list[tf.Variable]:
    """Variables of policy and critic."""
    return [*self.policy.variables, *self.critic.variables]


class PolicyAndCriticUpdate(experience_replay.ReplayUpdate):
  """Base of updates of a policy and a critic, both with a target network.

  `_policy`, `_critic`, `_target_policy` and `_target_critic` call the networks,
  with rows split over devices.
  """

  def __init__(
    self,
    online: Networks,
    target: Networks,
    actions: action_scaling.ActionScaling | discrete_actions.DiscreteActions,
    config: Any,
  ):
    """Makes an optimizer of each online network; the policy is exported.

    `actions` converts the environment's actions to those that critics take.
    """
    super().__init__(online.policy, config)
    self._online = online
    self._target = target
    self._policy, self._critic = map(data_parallel.split_rows, online)
    self._target_policy, self._target_critic = map(
      data_parallel.split_rows, target
    )
    self._actions: Any = actions
    self._policy_optimizer, self._critic_optimizer = (
      learners.ClippedAdam.from_config(network, config) for network in online
    )


class PolicyAndCriticBuilder(experience_replay.TransitionReplayBuilder):
  """Builder whose network is the policy; the update has the critic.

  Attributes:
    update_class: Subclass of `PolicyAndCriticUpdate`.
  """

  update_class: ClassVar[type[PolicyAndCriticUpdate]]

  @abc.abstractmethod
  def make_critic(self, spec: specs.EnvironmentSpec) -> Any:
    """Creates a critic; also called for the target critic."""

  def make_update(self, network, spec) -> interfaces.Update:
    online = Networks(network, self.make_critic(spec))
    target = Networks(self.make_network(spec), self.make_critic(spec))
    if action_parts.are_continuous(spec.actions):
      actions = action_scaling.ActionScaling(spec.actions)
    else:
      actions = discrete_actions.DiscreteActions(spec.actions)
    update = self.update_class(online, target, actions, self.config)
    return experience_replay.in_series(update, self.config)


def make_critics(spec: specs.EnvironmentSpec, config: Any) -> networks.Critic:
  """Creates an ensemble of critics of scalar values, as in TD3 and IQL."""
  return networks.make_critic(
    spec,
    config.hidden_sizes,
    image_torso=config.image_torso,
    num_critics=config.num_critics,
  )


def update_critics(
  critics: networks.Critic,
  optimizer: learners.ClippedAdam,
  observation: types.Nest,
  action: tf.Tensor,
  targets: tf.Tensor,
  weights: tf.Tensor,
) -> tuple[dict[str, tf.Tensor], tf.Tensor]:
  """Takes a gradient step of all critics on squared errors to shared targets.

  Actions taken are scaled to [−1, 1], `[B, D]`, Bellman targets, without
  gradients, and importance weights `[B]`. Returns metrics, and the mean
  absolute TD error of each item, `[B]`.
  """
  with tf.GradientTape() as tape:
    q = data_parallel.split_rows(critics)(observation, action)  # [B, N]
    errors = targets[:, None] - q  # [B, N]
    loss = tf.reduce_mean(weights * tf.reduce_sum(errors**2, axis=-1))
  norm = optimizer.minimize(tape, loss)
  sizes = tf.reduce_mean(tf.abs(errors), axis=-1)  # [B]
  metrics = {
    'critic_loss': loss,
    'td_error': tf.reduce_mean(sizes),
    'q_value': tf.reduce_mean(q),
    'critic_gradient_norm': norm,
  }
  return metrics, sizes


class CategoricalCriticBuilder(PolicyAndCriticBuilder):
  """Builder of an agent with a categorical critic."""

  def __init__(self, config: agent_config.AgentConfig | None = None):
    super().__init__(config)
    self.return_bounds = self.config.vmin, self.config.vmax

  def make_critic(self, spec: specs.EnvironmentSpec) -> networks.Critic:
    config = self.config
    return networks.make_critic(
      spec,
      config.hidden_sizes,
      config.num_atoms,
      config.image_torso,
      'layer_norm_mlp',
    )


class CategoricalCriticUpdate(PolicyAndCriticUpdate):
  """Base of updates with a categorical critic (C51), of logits `[B, N]`.

  See https://arxiv.org/abs/1707.06887. Target networks are copies, and the
  config is also an `agent_config.CategoricalConfig`.
  """

  def __init__(self, online, target, actions, config):
    super().__init__(online, target, actions, config)
    self._support = tf.linspace(
      float(config.vmin), float(config.vmax), config.num_atoms
    )  # [N]
    self._update_target = learners.PeriodicCopy(
      online.variables, target.variables, config.target_update_period
    )

  def _values(self, observation: types.Nest, action: tf.Tensor) -> tf.Tensor:
    """Returns the online values of actions `[..., D]` in [−1, 1], `[...]`."""
    logits = self._critic(observation, action)
    return losses.categorical_mean(logits, self._support)

  def _improve_critic(
    self,
    data: types.Transition,
    action: tf.Tensor,
    action_t: tf.Tensor,
    weights: tf.Tensor,
  ) -> tuple[dict[str, tf.Tensor], tf.Tensor]:
    """Takes a gradient step on the categorical TD loss.

    `action_t` are actions of the target policy in the next states, `[B, D]`.
    Returns metrics, and each item's KL divergence from its targets, `[B]`.
    """
    targets = losses.categorical_td_targets(
      r_t=data.reward,
      # The adder applied γ between the rewards; this is the last factor.
      discount_t=self._config.discount * data.discount,
      logits_t=self._target_critic(data.next_observation, action_t),
      z=self._support,
    )  # [B, N]
    with tf.GradientTape() as tape:
      logits = self._critic(data.observation, action)  # [B, N]
      divergences = losses.categorical_divergence(targets, logits)  # [B]
      loss = tf.reduce_mean(weights * divergences)
    norm = self._critic_optimizer.minimize(tape, loss)
    q = losses.categorical_mean(logits, self._support)  # [B]
    # Probability at the ends of the support indicates that it is too narrow.
    ends = targets[:, 0] + targets[:, -1]  # [B]
    metrics = {
      'critic_loss': loss,
      'q_value': tf.reduce_mean(q),
      'share_at_ends': tf.reduce_mean(ends),
      'critic_gradient_norm': norm,
    }
    return metrics, divergences
