"""The parts of PPO."""

from collections.abc import Sequence

from repertory.agents import builder
from repertory.agents.ppo import config as ppo_config
from repertory.agents.ppo import learning, networks
from repertory.components import (
  adders,
  distributions,
  policies,
  programs,
  replay,
  specs,
)
from repertory.components.adders import sequence
from repertory.components.networks import SequenceNetwork


class PPOBuilder(builder.Builder):
  """Proximal policy optimization; discrete or continuous actions.

  See https://arxiv.org/abs/1707.06347.
  """

  config: ppo_config.PPOConfig
  max_pending_items_per_environment = 1

  def __init__(self, config: ppo_config.PPOConfig | None = None):
    super().__init__(config or ppo_config.PPOConfig())

  @property
  def observes_previous_action_and_reward(self) -> bool:
    return self.config.previous_action_and_reward

  def batch_size(self, num_environments: int) -> int:
    return self.config.batch_size_for(num_environments)

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
    del num_environments, steps_done
    return policies.StochasticPolicy(
      network,
      distributions.make_distribution(spec.actions),
      seed,
      evaluation=evaluation,
    )

  def make_update(
    self, network: SequenceNetwork, spec: specs.EnvironmentSpec
  ) -> programs.Update:
    distribution = distributions.make_distribution(spec.actions)
    return learning.PPOUpdate(network, distribution, self.config)

  def make_tables(
    self, spec: specs.EnvironmentSpec, num_environments: int
  ) -> Sequence[replay.Table]:
    extras_spec = policies.stochastic_extras_spec(
      distributions.make_distribution(spec.actions),
      self.make_network(spec).state_spec(),
    )
    signature = sequence.signature(
      spec, self.config.unroll_length + 1, extras_spec
    )
    return [
      replay.queue(signature, self.config.queue_size_for(num_environments))
    ]

  def make_adder(
    self, destination: adders.Destination, batch_size: int
  ) -> adders.SequenceAdder:
    return adders.SequenceAdder(
      destination,
      batch_size,
      length=self.config.unroll_length + 1,
      across_episodes=True,
    )
