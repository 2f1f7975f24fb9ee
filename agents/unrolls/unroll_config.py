"""Base class of configs of agents with a queue of unrolls."""

import abc
import dataclasses
from typing import ClassVar

from repertory.agents.interface import agent_config, config_checks
from repertory.components.config import choices, settings


@dataclasses.dataclass(frozen=True, kw_only=True)
class UnrollConfig(agent_config.AgentConfig, abc.ABC):
  """Settings of an agent that learns once from each unroll.

  Agents define the defaults that are missing here.

  Attributes:
    unroll_length: T, steps per unroll.
  """

  # Several environments decorrelate on-policy batches, and batched acting costs
  # little more than a single environment. PPO has 8 for Atari
  # (arXiv:1707.06347, table 5), and IMPALA's batches come from several actors.
  default_environments_per_actor: ClassVar[int] = 8

  core: str = settings.field('none', "Recurrent core: 'none', 'lstm' or 'gru'.")
  core_size: int = settings.field(128, 'Output size of the recurrent core.')
  previous_action_and_reward: bool = settings.field(
    False,
    'Include the previous action and reward in observations.',
  )
  unroll_length: int
  adam_epsilon: float = settings.field(
    1e-5, 'ε of Adam, added to the denominator.'
  )
  max_abs_reward: float | None = settings.field(
    None,
    'Rewards are clipped to ± this before learning; None for no clipping.',
  )
  max_queue_size: int | None = settings.field(
    None,
    'Capacity of the queue, in unrolls; None for a batch and one unroll of '
    'each environment.',
  )
  prefetch: int = settings.field(
    0,
    'Number of batches that the replay server prefetches; each one makes data '
    'more off-policy.',
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
    """Returns the batch size of a learner step with minibatches, in unrolls.

    By default, a batch has the same number of unrolls of each environment.

    Args:
      num_environments: Number of environments of all actors.
      num_minibatches: Number of minibatches of a batch.
      min_size: Minimum batch size by default, in unrolls.
      min_steps: Minimum steps of a minibatch.

    Raises:
      SettingError: If the batch is too small for the minibatches.
    """
    size = self.batch_size
    if size is None:
      size = num_environments * -(-min_size // num_environments)
    steps = size * self.unroll_length
    # Unrolls of recurrent networks are not split.
    items = steps if self.core == 'none' else size
    most = min(items, steps // min_steps)
    config_checks.check(
      self,
      'num_minibatches',
      num_minibatches <= most,
      f'at most {most}, because a batch has {size} unrolls of '
      f'{self.unroll_length} steps, core is {self.core!r} and a minibatch '
      f'needs {min_steps} or more',
    )
    return size

  @abc.abstractmethod
  def batch_size_for(self, num_environments: int) -> int:
    """Returns the batch size of a learner step, in unrolls.

    Args:
      num_environments: Number of environments of all actors.

    Raises:
      ValueError: If the settings are invalid for this number of environments.
    """

  def default_queue_size(self, num_environments: int) -> int:
    """Returns the default capacity of the queue, in unrolls.

    Args:
      num_environments: Number of environments of all actors.
    """
    return self.batch_size_for(num_environments) + num_environments

  def queue_size_for(self, num_environments: int) -> int:
    """Returns the capacity of the queue, in unrolls.

    Args:
      num_environments: Number of environments of all actors.
    """
    if self.max_queue_size is not None:
      return self.max_queue_size
    return self.default_queue_size(num_environments)
