"""Shared parts of off-policy actor-critic agents."""

from collections.abc import Callable
from typing import Any, NamedTuple

import sonnet as snt
import tensorflow as tf

from repertory.agents.interface import builder as builder_lib
from repertory.agents.replay import experience_replay
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


class PolicyAndCriticUpdate(interfaces.Update):
  """Base of updates of a policy and a critic, both with a target network."""

  def __init__(
    self,
    online: Networks,
    target: Networks,
    scaling: action_scaling.ActionScaling,
    config: Any,
  ):
    """Makes an optimizer of each online network.

    Args:
      online: Networks to improve; the policy is exported.
      target: Target networks of the same architecture.
      scaling: Scaling of actions to [−1, 1], as critics take them.
      config: Config of an agent with prioritized replay and two learning rates.
    """
    super().__init__(online.policy)
    self._online = online
    self._target = target
    self._scaling = scaling
    self._config = config
    self._policy_optimizer, self._critic_optimizer = (
      learners.ClippedAdam.from_config(network, config) for network in online
    )
    self._importance_weights = experience_replay.ImportanceWeights(config)

  @classmethod
  def make(
    cls,
    builder: builder_lib.Builder,
    make_critic: Callable[[specs.EnvironmentSpec], Any],
    policy: snt.Module,
    spec: specs.EnvironmentSpec,
  ) -> interfaces.Update:
    """Makes all gradient steps of a learner step, with new critics and targets.

    Args:
      builder: Builder of the policy and its target.
      make_critic: Creates a critic; called for the online one, then its target.
      policy: Online policy.
      spec: Environment spec with bounded continuous actions.
    """
    online = Networks(policy, make_critic(spec))
    target = Networks(builder.make_network(spec), make_critic(spec))
    scaling = action_scaling.ActionScaling(spec.actions)
    update = cls(online, target, scaling, builder.config)
    return experience_replay.in_series(update, builder.config)


def make_critic(
  spec: specs.EnvironmentSpec, config: Any, num_outputs: int
) -> networks.Critic:
  """Creates a critic of actions in [−1, 1], with outputs `[B, num_outputs]`.

  Args:
    spec: Environment spec with bounded continuous actions.
    config: Config with `hidden_sizes`, of a `LayerNormMLP`, and `image_torso`.
    num_outputs: Outputs for each action, such as logits of atoms.

  Raises:
    ValueError: If observations or actions are unsupported.
  """
  critic = networks.Critic(
    spec.observations,
    config.hidden_sizes,
    num_outputs,
    config.image_torso,
    body='layer_norm_mlp',
  )
  size = action_scaling.ActionScaling(spec.actions).size
  networks.create_critic_variables(critic, spec.observations, size)
  return critic


def update_critics(
  critics: networks.CriticEnsemble,
  optimizer: learners.ClippedAdam,
  observation: types.Nest,
  action: tf.Tensor,
  targets: tf.Tensor,
  weights: tf.Tensor,
) -> tuple[dict[str, tf.Tensor], tf.Tensor]:
  """Takes a gradient step of all critics on squared errors to shared targets.

  Args:
    critics: Online critics, with values `[B, N]`.
    optimizer: Optimizer of the critics.
    observation: Nest of `[B, ...]`.
    action: Actions taken, scaled to [−1, 1], `[B, D]`.
    targets: Bellman targets, `[B]`; no gradient flows into them.
    weights: Importance weights, `[B]`.

  Returns:
    Metrics, and the mean absolute TD error of each item, `[B]`.
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


def make_support(config: Any) -> tf.Tensor:
  """Creates the atoms of a categorical critic, `[N]`.

  Args:
    config: Config with `vmin`, `vmax` and `num_atoms`.
  """
  return tf.linspace(float(config.vmin), float(config.vmax), config.num_atoms)


class CategoricalCritic:
  """Categorical critic (C51), with logits of N atoms.

  See https://arxiv.org/abs/1707.06887. An update must also have networks and
  optimizer as attributes, because only variables of its attributes are saved.
  """

  def __init__(
    self,
    online: networks.Critic,
    target: networks.Critic,
    optimizer: learners.ClippedAdam,
    config: Any,
  ):
    """Initializes the critic.

    Args:
      online: Online critic with logits `[B, N]`.
      target: Target critic of the same architecture.
      optimizer: Optimizer of the online critic.
      config: Config with `discount` and the settings of `make_support`.
    """
    self._online = online
    self._target = target
    self._optimizer = optimizer
    self._discount = config.discount
    self._support = make_support(config)  # [N]

  def values(self, observation: types.Nest, action: tf.Tensor) -> tf.Tensor:
    """Returns the online action values, means of the distributions, `[...]`.

    Args:
      observation: Nest of `[B, ...]`.
      action: In [−1, 1], `[..., D]`.
    """
    logits = data_parallel.split_rows(self._online)(observation, action)
    return losses.categorical_mean(logits, self._support)

  def improve(
    self,
    data: types.Transition,
    action: tf.Tensor,
    action_t: tf.Tensor,
    weights: tf.Tensor,
  ) -> tuple[dict[str, tf.Tensor], tf.Tensor]:
    """Takes a gradient step on the categorical TD loss.

    Args:
      data: Transitions.
      action: Actions taken, scaled to [−1, 1], `[B, D]`.
      action_t: Actions of the target policy in the next states, `[B, D]`.
      weights: Importance weights, `[B]`.

    Returns:
      Metrics, and the KL divergence from the targets of each item, `[B]`.
    """
    target = data_parallel.split_rows(self._target)
    targets = losses.categorical_td_targets(
      r_t=data.reward,
      # The adder applied γ between the rewards; this is the last factor.
      discount_t=self._discount * data.discount,
      logits_t=target(data.next_observation, action_t),
      z=self._support,
    )  # [B, N]
    with tf.GradientTape() as tape:
      online = data_parallel.split_rows(self._online)
      logits = online(data.observation, action)  # [B, N]
      divergences = losses.categorical_divergence(targets, logits)  # [B]
      loss = tf.reduce_mean(weights * divergences)
    norm = self._optimizer.minimize(tape, loss)
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
