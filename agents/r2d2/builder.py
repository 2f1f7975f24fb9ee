"""Builder of R2D2."""

from repertory.agents.actor_critic import exploration
from repertory.agents.interface import builder
from repertory.agents.r2d2 import config as r2d2_config
from repertory.agents.r2d2 import learning
from repertory.agents.replay import experience_replay
from repertory.components import adders, interfaces, networks, policies, types
from repertory.components.actions import discrete_actions


class R2D2Builder(builder.Builder):
  """R2D2: recurrent, prioritized Q-learning over sequences with burn-in.

  See https://openreview.net/forum?id=r1lyTjAqYX.
  """

  config: r2d2_config.R2D2Config

  def make_network(self, spec):
    config = self.config
    num_actions = discrete_actions.DiscreteActions(spec.actions).num_actions
    network = networks.SequenceNetwork(
      networks.ObservationTorso(
        spec.observations, config.hidden_sizes, config.image_torso
      ),
      networks.make_core(config.core, config.core_size),
      networks.make_value_head(num_actions, config.dueling),
    )
    network.create_variables(spec.observations)
    return network

  def make_policy(self, network, acting) -> interfaces.Policy:
    settings = exploration.epsilon_settings(self.config, acting)
    return policies.RecurrentEpsilonGreedyPolicy(network, **settings)

  def make_update(self, network, spec):
    target = self.make_network(spec)
    actions = discrete_actions.DiscreteActions(spec.actions)
    update = learning.R2D2Update(network, target, self.config, actions)
    return experience_replay.in_series(update, self.config)

  def experience(self, spec, num_environments):
    config = self.config
    sequences = adders.Sequences(
      length=config.sequence_length,
      period=config.period,
      burn_in=config.burn_in_length,
      across_episodes=config.across_episodes,
      extras_spec=types.SequenceExtras(
        state=self.make_network(spec).state_spec()
      ),
    )
    return experience_replay.describe(
      config,
      sequences,
      spec,
      num_environments,
      max_pending_items_per_environment=1,
    )
