"""Builder of MPO."""

import sonnet as snt
import tensorflow as tf

from repertory.agents.actor_critic import exploration, policy_and_critic
from repertory.agents.mpo import action_kinds, learning
from repertory.agents.mpo import config as mpo_config
from repertory.agents.replay import experience_replay, transition_replay
from repertory.components import interfaces, networks, specs
from repertory.components.actions import (
  action_parts,
  action_scaling,
  discrete_actions,
)


class MPOBuilder(transition_replay.TransitionReplayBuilder):
  """Maximum a posteriori policy optimization (MPO).

  See https://arxiv.org/abs/1812.02256. The builder's network is the policy; the
  update creates the critic.
  """

  config: mpo_config.MPOConfig

  @property
  def return_bounds(self):
    if self.config.distribution == 'none':
      return None
    return self.config.vmin, self.config.vmax

  def make_network(self, spec):
    if action_parts.are_continuous(spec.actions):
      size = action_scaling.ActionScaling(spec.actions).size
      head = networks.GaussianHead(size, self.config.initial_stddev)
    else:
      actions = discrete_actions.DiscreteActions(spec.actions)
      head = networks.make_policy_head(actions.num_actions)
    return self._make_network(spec, head)

  def make_critic(self, spec: specs.EnvironmentSpec) -> snt.Module:
    """Creates a critic; also called for the target critic.

    Returns:
      A `networks.Critic` of actions in [−1, 1], or a network that maps
      observations to outputs of A discrete actions, `[B, A, M]`.
    """
    num_outputs = self.config.num_critic_outputs
    if action_parts.are_continuous(spec.actions):
      return policy_and_critic.make_critic(spec, self.config, num_outputs)
    num_actions = discrete_actions.DiscreteActions(spec.actions).num_actions
    return self._make_network(
      spec,
      snt.Linear(num_actions * num_outputs, name='head'),
      snt.Reshape([num_actions, num_outputs]),
    )

  def _make_network(
    self, spec: specs.EnvironmentSpec, *head: snt.Module
  ) -> snt.Module:
    torso = networks.ObservationTorso(
      spec.observations, (), self.config.image_torso
    )
    body = networks.LayerNormMLP(self.config.hidden_sizes)
    network = snt.Sequential([torso, body, *head])
    networks.create_variables(network, spec.observations)
    return network

  def make_policy(self, network, acting) -> interfaces.Policy:
    if action_parts.are_continuous(acting.spec.actions):
      return exploration.make_continuous_policy(network, _draw, acting)
    return exploration.make_categorical_policy(network, acting)

  def make_update(self, network, spec):
    online = policy_and_critic.Networks(network, self.make_critic(spec))
    target = policy_and_critic.Networks(
      self.make_network(spec), self.make_critic(spec)
    )
    if action_parts.are_continuous(spec.actions):
      scaling = action_scaling.ActionScaling(spec.actions)
      kind = action_kinds.Gaussians(scaling, self.config)
    else:
      actions = discrete_actions.DiscreteActions(spec.actions)
      kind = action_kinds.Categoricals(actions, self.config)
    update = learning.MPOUpdate(online, target, kind, self.config)
    return experience_replay.in_series(update, self.config)


def _draw(parameters: tf.Tensor, noise: tf.Tensor) -> tf.Tensor:
  mean, scale = tf.split(parameters, 2, axis=-1)  # [B, D]
  return tf.clip_by_value(mean + scale * noise, -1.0, 1.0)
