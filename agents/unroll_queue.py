"""What agents have in common that learn from a queue of unrolls."""

import abc
import math
from collections.abc import Sequence

from repertory.agents import builder
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


class UnrollQueueBuilder(builder.Builder):
  """Makes policy, table and adder; network and update are left to the agent.

  Actions are drawn from the distribution whose parameters the network gives,
  and each unroll is learned from once. `config` has the fields
  `previous_action_and_reward` and `unroll_length`, and the method
  `queue_size_for`.
  """

  max_pending_items_per_environment = 1
  setting_names = {'max_size': 'max_queue_size'}  # noqa: RUF012

  @property
  def observes_previous_action_and_reward(self) -> bool:
    return self.config.previous_action_and_reward

  @property
  def across_episodes(self) -> bool:
    """Whether unrolls go on over the end of episodes."""
    return True

  @abc.abstractmethod
  def make_network(self, spec: specs.EnvironmentSpec) -> SequenceNetwork:
    """Makes a network whose outputs are `networks.ActorCriticOutput`."""

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

  def max_items(self, num_steps: int) -> int:
    return adders.max_sequences(
      num_steps, self.config.unroll_length, self.across_episodes
    )

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

  def bundle_size(self, num_slots: int, num_environments: int) -> int:
    if not self.across_episodes:
      return 1  # Unrolls end with the episodes, each at a time of its own.
    return math.gcd(num_slots, self.batch_size(num_environments))

  def make_adder(
    self, destination: adders.Destination, batch_size: int
  ) -> adders.SequenceAdder:
    return adders.SequenceAdder(
      destination,
      batch_size,
      length=self.config.unroll_length + 1,
      across_episodes=self.across_episodes,
    )
