"""Builder of SAC."""

from repertory.agents.actor_critic import additional_loss, exploration
from repertory.agents.replay import experience_replay, transition_replay
from repertory.agents.sac import config as sac_config
from repertory.agents.sac import discrete_learning, learning, networks
from repertory.components import interfaces, specs
from repertory.components.actions import (
  action_parts,
  action_scaling,
  discrete_actions,
)
from repertory.components.distributions import squashed_gaussian
from repertory.components.networks import CriticEnsemble


class SACBuilder(
  additional_loss.TakesAdditionalLoss, transition_replay.TransitionReplayBuilder
):
  """Soft actor-critic (SAC) with a learned temperature.

  See https://arxiv.org/abs/1812.05905. The builder's network is the policy; the
  update creates the critics.
  """

  config: sac_config.SACConfig

  @property
  def needs_whole_batches(self):
    critic_body, _ = self.config.critic_layers
    return 'batch_renorm_mlp' in (self.config.body, critic_body)

  def make_network(self, spec):
    if not action_parts.are_continuous(spec.actions):
      self.config.check_discrete()
    return networks.make_policy_network(spec, self.config)

  def make_critics(self, spec: specs.EnvironmentSpec) -> CriticEnsemble:
    """Creates critics; also called for the target critics."""
    return networks.make_critics(spec, self.config)

  def make_discrete_critics(
    self, spec: specs.EnvironmentSpec
  ) -> networks.DiscreteCritics:
    """Creates critics of discrete actions; also called for target critics."""
    return networks.DiscreteCritics(spec, self.config)

  def make_policy(self, network, acting) -> interfaces.Policy:
    num_random_steps = self.config.num_random_steps
    if not action_parts.are_continuous(acting.spec.actions):
      return exploration.make_categorical_policy(
        network, acting, num_random_steps
      )
    size = action_scaling.ActionScaling(acting.spec.actions).size
    distribution = squashed_gaussian.SquashedGaussian(size)
    return exploration.make_continuous_policy(
      network,
      lambda parameters, noise: distribution.sample(parameters, noise)[0],
      acting,
      num_random_steps,
    )

  def make_update(self, network, spec):
    if action_parts.are_continuous(spec.actions):
      has_targets = self.config.target_update_rate is not None
      update = learning.SACUpdate(
        network,
        self.make_critics(spec),
        self.make_critics(spec) if has_targets else None,
        action_scaling.ActionScaling(spec.actions),
        self.config,
        self.given_loss,
      )
    else:
      update = discrete_learning.DiscreteSACUpdate(
        network,
        self.make_discrete_critics(spec),
        self.make_discrete_critics(spec),
        discrete_actions.DiscreteActions(spec.actions),
        self.config,
        self.given_loss,
      )
    return experience_replay.in_series(update, self.config)
