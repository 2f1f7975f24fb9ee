"""The parts of R2D2."""

from collections.abc import Sequence

from repertory.agents import builder, experience_replay, exploration
from repertory.agents.r2d2 import config as r2d2_config
from repertory.agents.r2d2 import learning, networks
from repertory.components import (
  adders,
  policies,
  programs,
  replay,
  specs,
  types,
)
from repertory.components.adders import sequence
from repertory.components.networks import SequenceNetwork


class R2D2Builder(builder.Builder):
  """Recurrent, prioritized Q-learning over sequences with burn-in.

  See https://openreview.net/forum?id=r1lyTjAqYX.
  """

  config: r2d2_config.R2D2Config
  max_pending_items_per_environment = 1
  setting_names = experience_replay.SETTING_NAMES

  def __init__(self, config: r2d2_config.R2D2Config | None = None):
    super().__init__(config or r2d2_config.R2D2Config())

  @property
  def observes_previous_action_and_reward(self) -> bool:
    return self.config.previous_action_and_reward

  def max_items(self, num_steps: int) -> int:
    return adders.max_sequences(
      num_steps, self.config.period, self.config.across_episodes
    )

  def make_network(self, spec: specs.EnvironmentSpec) -> SequenceNetwork:
    return networks.make_network(spec, self.config)

  def make_policy(
    self,
    network: SequenceNetwork,
    spec: specs.EnvironmentSpec,
    *,
    num_environments: int,
    seed: int,
    steps_done: int,
    evaluation: bool,
  ) -> programs.Policy:
    settings = exploration.epsilon_settings(
      self.config,
      spec,
      num_environments=num_environments,
      steps_done=steps_done,
      evaluation=evaluation,
    )
    return policies.RecurrentEpsilonGreedyPolicy(network, seed=seed, **settings)

  def make_update(
    self, network: SequenceNetwork, spec: specs.EnvironmentSpec
  ) -> programs.Update:
    return learning.R2D2Update(network, self.make_network(spec), self.config)

  def make_tables(
    self, spec: specs.EnvironmentSpec, num_environments: int
  ) -> Sequence[replay.Table]:
    config = self.config
    signature = sequence.signature(
      spec,
      config.sequence_length,
      types.SequenceExtras(state=self.make_network(spec).state_spec()),
    )
    return [experience_replay.make_table(config, signature, num_environments)]

  def make_adder(
    self, destination: adders.Destination, batch_size: int
  ) -> adders.SequenceAdder:
    config = self.config
    return adders.SequenceAdder(
      destination,
      batch_size,
      length=config.sequence_length,
      period=config.period,
      burn_in=config.burn_in_length,
      across_episodes=config.across_episodes,
    )

  def make_priority_updater(
    self, connection: replay.Connection, table: replay.Table
  ) -> replay.PriorityUpdater | None:
    return experience_replay.make_priority_updater(
      self.config, connection, table
    )
