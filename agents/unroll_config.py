"""The settings of agents that learn from a queue of unrolls."""

import abc
import dataclasses
from typing import ClassVar

from repertory.agents import agent_config, config_checks
from repertory.components import choices, settings


@dataclasses.dataclass(frozen=True, kw_only=True)
class UnrollConfig(agent_config.AgentConfig, abc.ABC):
  """Settings of an agent that learns once from each unroll.

  The agent gives a default to what has none here.

  Attributes:
    unroll_length: T, steps of an unroll.
  """

  # What is learned from once should be of many places at a time, and a batch of
  # them costs little more to act for than one: PPO has 8 for Atari
  # (arXiv:1707.06347, table 5), and IMPALA's batches are of several actors.
  default_environments_per_actor: ClassVar[int] = 8

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
  max_queue_size: int | None = settings.field(
    None,
    'Unrolls the queue holds; None for a batch and one of each environment.',
  )
  prefetch: int = settings.field(
    0,
    'Batches that a replay server prepares ahead of the learner; each one '
    'makes the data older.',
  )

  def __post_init__(self):
    super().__post_init__()
    config_checks.check_one_of(self, 'core', choices.CORES)
    config_checks.check_at_least(
      self, 1, 'core_size', 'unroll_length', 'max_queue_size'
    )
    config_checks.check_positive(self, 'adam_epsilon', 'max_abs_reward')

  def divided_batch_size(
    self,
    num_environments: int,
    num_minibatches: int,
    *,
    min_size: int = 1,
    min_steps: int = 1,
  ) -> int:
    """Returns how many unrolls a learner step takes and divides.

    If nothing is said, it is the same number of each environment.

    Args:
      num_environments: Over all actors.
      num_minibatches: Into so many a batch is divided.
      min_size: Unrolls of a batch if nothing is said, at least.
      min_steps: What a minibatch needs at least.

    Raises:
      SettingError: If the batch is too small to be divided.
    """
    size = self.batch_size
    if size is None:
      size = num_environments * -(-min_size // num_environments)
    steps = size * self.unroll_length
    # Of unrolls through a memory, none is divided.
    items = steps if self.core == 'none' else size
    most = min(items, steps // min_steps)
    config_checks.check(
      self,
      'num_minibatches',
      num_minibatches <= most,
      f'at most {most}, for a batch is {size} unrolls of {self.unroll_length} '
      f'steps, core is {self.core!r} and a minibatch needs {min_steps} or more',
    )
    return size

  @abc.abstractmethod
  def batch_size_for(self, num_environments: int) -> int:
    """Returns how many unrolls a learner step takes.

    Args:
      num_environments: Over all actors.

    Raises:
      ValueError: If the settings do not fit that many.
    """

  def default_queue_size(self, num_environments: int) -> int:
    """Returns how many unrolls the queue holds if nothing is said.

    Args:
      num_environments: Over all actors.
    """
    return self.batch_size_for(num_environments) + num_environments

  def queue_size_for(self, num_environments: int) -> int:
    """Returns how many unrolls the queue holds.

    Args:
      num_environments: Over all actors.
    """
    if self.max_queue_size is not None:
      return self.max_queue_size
    return self.default_queue_size(num_environments)
