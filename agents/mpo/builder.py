"""Builder of MPO."""

import sonnet as snt
import tensorflow as tf

from repertory.agents.actor_critic import exploration, policy_and_critic
from repertory.agents.interface import builder
from repertory.agents.mpo import action_kinds, learning, networks
from repertory.agents.mpo import config as mpo_config
from repertory.agents.replay import experience_replay, transition_replay
from repertory.components import interfaces, specs
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

  def __init__(self, config: mpo_config.MPOConfig | None = None):
    super().__init__(config or mpo_config.MPOConfig())

  @property
  def return_bounds(self) -> tuple[float, float] | None:
    if self.config.distribution == 'none':
      return None
    return self.config.vmin, self.config.vmax

  def make_network(self, spec: specs.EnvironmentSpec) -> snt.Module:
    return networks.make_policy_network(spec, self.config)

  def make_critic(self, spec: specs.EnvironmentSpec) -> snt.Module:
    """Creates a critic; also called for the target critic."""
    return networks.make_critic(spec, self.config)

  def make_policy(
    self, network: snt.Module, acting: builder.Acting
  ) -> interfaces.Policy:
    if action_parts.are_continuous(acting.spec.actions):
      return exploration.make_continuous_policy(network, _draw, acting)
    return exploration.make_categorical_policy(network, acting)

  def make_update(
    self, network: snt.Module, spec: specs.EnvironmentSpec
  ) -> interfaces.Update:
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
