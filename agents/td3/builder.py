"""Builder of TD3."""

import sonnet as snt
import tensorflow as tf

from repertory.agents.actor_critic import exploration, policy_and_critic
from repertory.agents.replay import experience_replay, transition_replay
from repertory.agents.td3 import config as td3_config
from repertory.agents.td3 import learning
from repertory.components import interfaces, networks, specs
from repertory.components.actions import action_scaling
from repertory.components.networks import CriticEnsemble


class TD3Builder(transition_replay.TransitionReplayBuilder):
  """Twin delayed deterministic policy gradient (TD3).

  See https://arxiv.org/abs/1802.09477. The builder's network is the policy; the
  update creates the critics.
  """

  config: td3_config.TD3Config

  def make_network(self, spec):
    size = action_scaling.ActionScaling(spec.actions).size
    torso = networks.ObservationTorso(
      spec.observations, self.config.hidden_sizes, self.config.image_torso
    )
    network = snt.Sequential([torso, snt.Linear(size, name='head'), tf.tanh])
    networks.create_variables(network, spec.observations)
    return network

  def make_critics(self, spec: specs.EnvironmentSpec) -> CriticEnsemble:
    """Creates critics; also called for the target critics."""
    config = self.config
    return networks.make_critics(
      spec, config.hidden_sizes, config.num_critics, config.image_torso
    )

  def make_policy(self, network, acting) -> interfaces.Policy:
    return exploration.make_deterministic_policy(
      network, self.config.sigma, acting, self.config.num_random_steps
    )

  def make_update(self, network, spec):
    online = policy_and_critic.Networks(network, self.make_critics(spec))
    target = policy_and_critic.Networks(
      self.make_network(spec), self.make_critics(spec)
    )
    update = learning.TD3Update(
      online, target, action_scaling.ActionScaling(spec.actions), self.config
    )
    return experience_replay.in_series(update, self.config)
