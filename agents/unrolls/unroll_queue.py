"""Base class of builders of agents with a queue of unrolls."""

from typing import Any

from repertory.agents.interface import builder
from repertory.components import (
  adders,
  distributions,
  interfaces,
  policies,
  replay,
  specs,
  types,
)
from repertory.components.transports import experience as experience_lib


class UnrollQueueBuilder(builder.Builder):
  """Builder of an agent that learns once from each unroll.

  It describes the experience and creates a stochastic policy, for networks with
  outputs `networks.ActorCriticOutput`, which agents may override. `config` is
  an `unroll_config.UnrollConfig`.

  Attributes:
    across_episodes: Whether unrolls continue across episode boundaries.
  """

  across_episodes: bool = True
  rates_combinations = False

  def make_policy(self, network, acting) -> interfaces.Policy:
    return policies.StochasticPolicy(
      network,
      distributions.make_distribution(acting.spec.actions),
      acting.seed,
      evaluation=acting.evaluation,
    )

  def extras_spec(self, spec: specs.EnvironmentSpec) -> types.SequenceExtras:
    """Returns the array specs of the extras of the policy."""
    network: Any = self.make_network(spec)
    return policies.stochastic_extras_spec(
      distributions.make_distribution(spec.actions), network.state_spec()
    )

  def experience(self, spec, num_environments) -> experience_lib.Experience:
    unrolls = adders.Sequences(
      length=self.config.unroll_length + 1,
      across_episodes=self.across_episodes,
      extras_spec=self.extras_spec(spec),
    )
    queue_size = self.config.queue_size_for(num_environments)
    return experience_lib.Experience(
      unrolls,
      [replay.queue(unrolls.signature(spec), queue_size)],
      batch_size=self.config.batch_size_for(num_environments),
      prefetch=self.config.prefetch,
      max_pending_items_per_environment=1,
      setting_names={'max_size': 'max_queue_size'},
    )
