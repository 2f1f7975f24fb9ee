"""Builder of CRR."""

from repertory.agents.actor_critic import exploration, policy_and_critic
from repertory.agents.crr import config as crr_config
from repertory.agents.crr import learning
from repertory.agents.replay import experience_replay, transition_replay
from repertory.components import interfaces, networks, specs
from repertory.components.actions import action_scaling
from repertory.components.distributions import bounded_gaussian
from repertory.components.networks import Critic


class CRRBuilder(transition_replay.TransitionReplayBuilder):
  """Critic-regularized regression (CRR).

  See https://arxiv.org/abs/2006.15134. The builder's network is the policy; the
  update creates the critic.
  """

  config: crr_config.CRRConfig

  @property
  def return_bounds(self):
    return self.config.vmin, self.config.vmax

  def make_network(self, spec):
    return networks.make_bounded_gaussian_network(
      spec, self.config.hidden_sizes, self.config.image_torso
    )

  def make_critic(self, spec: specs.EnvironmentSpec) -> Critic:
    """Creates a critic; also called for the target critic."""
    return policy_and_critic.make_critic(
      spec, self.config, self.config.num_atoms
    )

  def make_policy(self, network, acting) -> interfaces.Policy:
    size = action_scaling.ActionScaling(acting.spec.actions).size
    distribution = bounded_gaussian.BoundedGaussian(size)
    return exploration.make_continuous_policy(
      network, distribution.sample, acting
    )

  def make_update(self, network, spec):
    online = policy_and_critic.Networks(network, self.make_critic(spec))
    target = policy_and_critic.Networks(
      self.make_network(spec), self.make_critic(spec)
    )
    update = learning.CRRUpdate(
      online, target, action_scaling.ActionScaling(spec.actions), self.config
    )
    return experience_replay.in_series(update, self.config)
