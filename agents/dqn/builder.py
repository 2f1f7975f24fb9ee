"""Builder of DQN."""

import dataclasses

from repertory.agents.actor_critic import additional_loss, exploration
from repertory.agents.dqn import config as dqn_config
from repertory.agents.dqn import learning, networks
from repertory.agents.replay import experience_replay, transition_replay
from repertory.components import adders, interfaces, policies
from repertory.components.actions import discrete_actions


class DQNBuilder(
  additional_loss.TakesAdditionalLoss, transition_replay.TransitionReplayBuilder
):
  """DQN: double, dueling, n-step, with prioritized replay; up to Rainbow.

  Each part is an option, as are distributional returns, noisy networks and
  Munchausen rewards. All but the last form Rainbow,
  https://arxiv.org/abs/1710.02298.
  """

  config: dqn_config.DQNConfig

  @property
  def needs_demonstrations(self):
    return self.config.margin_weight is not None

  @property
  def transitions(self) -> adders.Transitions:
    return dataclasses.replace(
      super().transitions, max_abs_reward=self.config.max_abs_reward
    )

  @property
  def return_bounds(self):
    config = self.config
    # With clipped rewards, returns differ from those of the environment.
    if config.distribution != 'categorical' or config.max_abs_reward:
      return None
    return config.vmin, config.vmax

  def make_network(self, spec):
    return networks.make_network(spec, self.config)

  def make_policy(self, network, acting) -> interfaces.Policy:
    settings = exploration.epsilon_settings(self.config, acting)
    values = networks.make_values(network, self.config)
    noise_size = networks.noise_size(network, self.config)
    if noise_size and not acting.evaluation:
      return policies.NoisyEpsilonGreedyPolicy(values, noise_size, **settings)
    return policies.EpsilonGreedyPolicy(values, **settings)

  def make_update(self, network, spec):
    target = self.make_network(spec)
    actions = discrete_actions.DiscreteActions(spec.actions)
    update = learning.DQNUpdate(
      network, target, self.config, actions, self.given_loss
    )
    return experience_replay.in_series(update, self.config)
