"""Builder of IQL."""

import sonnet as snt

from repertory.agents.actor_critic import exploration
from repertory.agents.iql import config as iql_config
from repertory.agents.iql import learning
from repertory.agents.replay import experience_replay, transition_replay
from repertory.components import interfaces, networks, specs
from repertory.components.actions import action_scaling
from repertory.components.distributions import bounded_gaussian
from repertory.components.networks import CriticEnsemble


class IQLBuilder(transition_replay.TransitionReplayBuilder):
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
    torso = networks.ObservationTorso(
      spec.observations, self.config.hidden_sizes, self.config.image_torso
    )
    network = snt.Sequential([torso, snt.Linear(1, name='value')])
    networks.create_variables(network, spec.observations)
    return network

  def make_critics(self, spec: specs.EnvironmentSpec) -> CriticEnsemble:
    """Creates critics; also called for the target critics."""
    config = self.config
    return networks.make_critics(
      spec, config.hidden_sizes, config.num_critics, config.image_torso
    )

  def make_policy(self, network, acting) -> interfaces.Policy:
    size = action_scaling.ActionScaling(acting.spec.actions).size
    distribution = bounded_gaussian.BoundedGaussian(size)
    return exploration.make_continuous_policy(
      network, distribution.sample, acting
    )

  def make_update(self, network, spec):
    learned = learning.IQLNetworks(
      network, self.make_value_network(spec), self.make_critics(spec)
    )
    update = learning.IQLUpdate(
      learned,
      self.make_critics(spec),
      action_scaling.ActionScaling(spec.actions),
      self.config,
    )
    return experience_replay.in_series(update, self.config)
