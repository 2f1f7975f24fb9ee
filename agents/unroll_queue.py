"""What agents have in common that learn from a queue of unrolls."""

import abc
import dataclasses

from repertory.agents import agent_config, builder, config_checks
from repertory.components import (
  adders,
  distributions,
  networks,
  policies,
  programs,
  replay,
  settings,
  specs,
)
from repertory.components import experience as experience_lib
from repertory.components.networks import SequenceNetwork


@dataclasses.dataclass(frozen=True, kw_only=True)
class UnrollConfig(agent_config.AgentConfig, abc.ABC):
  """Settings of an agent that learns once from each unroll.

  The agent gives a default to what has none here.

  Attributes:
    unroll_length: T, steps of an unroll.
    max_queue_size: Unrolls the queue holds; None for `default_queue_size`.
  """

  core: str = settings.field('none', "Memory: 'none', 'lstm' or 'gru'.")
  core_size: int = settings.field(128, "Size of the memory's output.")
  previous_action_and_reward: bool = settings.field(
    False,
    'Whether the network sees the action and the reward before each '
    'observation.',
  )
  unroll_length: int
  adam_epsilon: float = settings.field(1e-5, "Added to Adam's denominator.")
  max_abs_reward: float | None = settings.field(
    None,
    'Rewards are clipped to ± this before learning; None leaves them as they '
    'are.',
  )
  max_queue_size: int | None
  prefetch: int = settings.field(
    0,
    'Batches that a replay server prepares ahead of the learner; each one '
    'makes the data older.',
  )

  def __post_init__(self):
    super().__post_init__()
    config_checks.check_one_of(self, 'core', networks.CORES)
    config_checks.check_at_least(
      self, 1, 'core_size', 'unroll_length', 'max_queue_size'
    )
    config_checks.check_positive(self, 'adam_epsilon', 'max_abs_reward')

  @abc.abstractmethod
  def batch_size_for(self, num_environments: int) -> int:
    """Returns how many unrolls a learner step takes.

    Args:
      num_environments: Over all actors.

    Raises:
      ValueError: If the settings do not fit that many.
    """

  @abc.abstractmethod
  def default_queue_size(self, num_environments: int) -> int:
    """Returns how many unrolls the queue holds if nothing is said.

    Args:
      num_environments: Over all actors.
    """

  def queue_size_for(self, num_environments: int) -> int:
    """Returns how many unrolls the queue holds.

    Args:
      num_environments: Over all actors.
    """
    if self.max_queue_size is not None:
      return self.max_queue_size
    return self.default_queue_size(num_environments)


class UnrollQueueBuilder(builder.Builder):
  """Makes the policy and describes the experience; the rest is the agent's.

  Actions are drawn from the distribution whose parameters the network gives,
  and each unroll is learned from once. `config` is an `UnrollConfig`.
  """

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
    self, network: SequenceNetwork, acting: builder.Acting
  ) -> programs.Policy:
    return policies.StochasticPolicy(
      network,
      distributions.make_distribution(acting.spec.actions),
      acting.seed,
      evaluation=acting.evaluation,
    )

  def experience(
    self, spec: specs.EnvironmentSpec, num_environments: int
  ) -> experience_lib.Experience:
    extras_spec = policies.stochastic_extras_spec(
      distributions.make_distribution(spec.actions),
      self.make_network(spec).state_spec(),
    )
    unrolls = adders.Sequences(
      length=self.config.unroll_length + 1,
      across_episodes=self.across_episodes,
      extras_spec=extras_spec,
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
