"""Builder of D4PG."""

import sonnet as snt
import tensorflow as tf

from repertory.agents.actor_critic import exploration, policy_and_critic
from repertory.agents.d4pg import config as d4pg_config
from repertory.agents.d4pg import learning
from repertory.agents.replay import experience_replay, transition_replay
from repertory.components import interfaces, networks, specs
from repertory.components.actions import action_scaling
from repertory.components.networks import Critic

# Variance scale of the policy's last layer: initial actions are near 0, where
# tanh is steep.
_HEAD_SCALE = 1e-4


class D4PGBuilder(transition_replay.TransitionReplayBuilder):
  """Distributed distributional deterministic policy gradients (D4PG).

  See https://arxiv.org/abs/1804.08617. The builder's network is the policy; the
  update creates the critic.
  """

  config: d4pg_config.D4PGConfig

  @property
  def return_bounds(self):
    return self.config.vmin, self.config.vmax

  def make_network(self, spec):
    size = action_scaling.ActionScaling(spec.actions).size
    torso = networks.ObservationTorso(
      spec.observations, (), self.config.image_torso
    )
    body = networks.LayerNormMLP(self.config.hidden_sizes)
    initializer = snt.initializers.VarianceScaling(_HEAD_SCALE)
    head = snt.Linear(size, w_init=initializer, name='head')
    network = snt.Sequential([torso, body, head, tf.tanh])
    networks.create_variables(network, spec.observations)
    return network

  def make_critic(self, spec: specs.EnvironmentSpec) -> Critic:
    """Creates a critic; also called for the target critic."""
    return policy_and_critic.make_critic(
      spec, self.config, self.config.num_atoms
    )

  def make_policy(self, network, acting) -> interfaces.Policy:
    return exploration.make_deterministic_policy(
      network, self.config.sigma, acting
    )

  def make_update(self, network, spec):
    online = policy_and_critic.Networks(network, self.make_critic(spec))
    target = policy_and_critic.Networks(
      self.make_network(spec), self.make_critic(spec)
    )
    update = learning.D4PGUpdate(
      online, target, action_scaling.ActionScaling(spec.actions), self.config
    )
    return experience_replay.in_series(update, self.config)
