"""Base classes of configs of agents with a queue of unrolls."""

import dataclasses
from typing import Any, ClassVar

from repertory.agents.interface import agent_config, config_checks
from repertory.components.config import settings


@dataclasses.dataclass(frozen=True, kw_only=True)
class UnrollConfig(agent_config.CoreConfig):
  """Settings of an agent that learns once from each unroll.

  Attributes:
    queued_batches: Batches in the default capacity of the queue.
  """

  queued_batches: ClassVar[int] = 1
  schedulable: ClassVar[tuple[str, ...]] = ('max_abs_reward',)

  # Several environments decorrelate on-policy batches, and batched acting costs
  # little more than a single environment. PPO has 8 for Atari
  # (arXiv:1707.06347, table 5), and IMPALA's batches come from several actors.
  default_environments_per_actor: ClassVar[int] = 8

  unroll_length: config_checks.PositiveInt = agent_config.required(
    'T, steps per unroll.'
  )
  batch_size: int | None = agent_config.required('Unrolls per learner step.')
  adam_epsilon: config_checks.PositiveFloat = settings.field(
    1e-5, 'ε of Adam, added to the denominator.'
  )
  max_abs_reward: config_checks.PositiveFloat | None = settings.field(
    None,
    'Rewards are clipped to ± this before learning, after any scaling; None '
    'for no clipping.',
  )
  max_queue_size: config_checks.PositiveInt | None = settings.field(
    None,
    'Capacity of the queue, in unrolls; None for a batch and one unroll of '
    'each environment.',
  )
  prefetch: int = settings.field(
    0,
    'Number of batches that the replay server prefetches; each one makes data '
    'more off-policy.',
  )

  def batch_size_for(self, num_environments: int) -> int:
    """Returns the batch size of a learner step, in unrolls.

    Args:
      num_environments: Number of environments of all actors.

    Raises:
      ValueError: If the settings are invalid for this number of environments.
    """
    del num_environments
    size: Any = self.batch_size
    return size

  def queue_size_for(self, num_environments: int) -> int:
    """Returns the capacity of the queue, in unrolls."""
    if self.max_queue_size is not None:
      return self.max_queue_size
    size = self.batch_size_for(num_environments)
    return self.queued_batches * size + num_environments


@dataclasses.dataclass(frozen=True, kw_only=True)
class MinibatchConfig(UnrollConfig, agent_config.NetworkConfig):
  """Settings of an agent that takes several epochs of minibatch steps.

  Attributes:
    min_batch_size: Minimum of the default batch size, in unrolls.
    min_minibatch_steps: Minimum steps of a minibatch.
  """

  min_batch_size: ClassVar[int] = 1
  schedulable: ClassVar[tuple[str, ...]] = ('lambda_',)

  batch_size: int | None = agent_config.default(
    None, '; None for the same number of each environment'
  )
  num_epochs: config_checks.PositiveInt = settings.field(
    4, 'Epochs over each batch.'
  )
  num_minibatches: config_checks.PositiveInt = settings.field(
    4, 'Minibatches (gradient steps) per epoch.'
  )
  lambda_: config_checks.Fraction = settings.field(0.95, 'λ of the returns.')
  anneal_learner_steps: config_checks.PositiveInt | None = settings.field(
    None,
    'Learner steps over which the learning rate decays linearly to 0; None '
    'for a constant one.',
  )

  @property
  def min_minibatch_steps(self) -> int:
    return 1

  def batch_size_for(self, num_environments: int) -> int:
    size = self.batch_size
    if size is None:
      size = num_environments * -(-self.min_batch_size // num_environments)
    steps, least = size * self.unroll_length, self.min_minibatch_steps
    # Unrolls of recurrent networks are not split.
    items = steps if self.core == 'none' else size
    most = min(items, steps // least)
    config_checks.check(
      self,
      'num_minibatches',
      self.num_minibatches <= most,
      f'at most {most}, because a batch has {size} unrolls of '
      f'{self.unroll_length} steps, core is {self.core!r} and a minibatch '
      f'needs {least} or more',
    )
    return size


@dataclasses.dataclass(frozen=True, kw_only=True)
class ActorCriticConfig(MinibatchConfig):
  """Settings of networks, values and advantages of PPO and V-MPO."""

  # The number of actors of PPO, for Atari.
  min_batch_size: ClassVar[int] = 8
  schedulable: ClassVar[tuple[str, ...]] = ('baseline_cost',)

  shared_sizes: config_checks.Sizes = settings.field(
    (),
    'Hidden layer sizes shared by policy and value, before the recurrent core.',
  )
  hidden_sizes: tuple[int, ...] = settings.field(
    (64, 64),
    'Hidden layer sizes of policy and value each, after the recurrent core.',
  )
  batch_size: int | None = agent_config.default(None, ', at least 8 in total')
  normalize_advantages: bool = settings.field(
    True,
    'Normalize advantages to mean 0 and standard deviation 1 in each '
    'minibatch.',
  )
  max_gradient_norm: float | None = agent_config.default(
    0.5, ": that of PPO's code"
  )
  baseline_cost: config_checks.NonNegativeFloat = settings.field(
    0.5, "Weight of the value loss: that of PPO's code."
  )
