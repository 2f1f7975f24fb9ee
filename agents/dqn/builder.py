"""The parts of DQN."""

from collections.abc import Sequence

import sonnet as snt

from repertory.agents import builder, experience_replay, exploration
from repertory.agents.dqn import config as dqn_config
from repertory.agents.dqn import learning, networks
from repertory.components import adders, policies, programs, replay, specs
from repertory.components.adders import transition


class DQNBuilder(builder.Builder):
  """Double, dueling, n-step DQN with prioritized replay; each is an option.

  See https://arxiv.org/abs/1710.02298 for all of them together.
  """

  config: dqn_config.DQNConfig

  def __init__(self, config: dqn_config.DQNConfig | None = None):
    super().__init__(config or dqn_config.DQNConfig())

  def make_network(self, spec: specs.EnvironmentSpec) -> snt.Module:
    config = self.config
    return networks.make_network(
      spec, config.hidden_sizes, config.dueling, config.image_torso
    )

  def make_policy(
    self,
    network: snt.Module,
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
    return policies.EpsilonGreedyPolicy(network, seed=seed, **settings)

  def make_update(
    self, network: snt.Module, spec: specs.EnvironmentSpec
  ) -> programs.Update:
    return learning.DQNUpdate(network, self.make_network(spec), self.config)

  def make_tables(
    self, spec: specs.EnvironmentSpec, num_environments: int
  ) -> Sequence[replay.Table]:
    return [
      experience_replay.make_table(
        self.config, transition.signature(spec), num_environments
      )
    ]

  def make_adder(
    self, destination: adders.Destination, batch_size: int
  ) -> adders.TransitionAdder:
    return adders.TransitionAdder(
      destination,
      batch_size,
      n_step=self.config.n_step,
      discount=self.config.discount,
    )

  def make_priority_updater(
    self, connection: replay.Connection, table: replay.Table
  ) -> replay.PriorityUpdater | None:
    return experience_replay.make_priority_updater(
      self.config, connection, table
    )
