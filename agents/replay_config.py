"""The settings of agents that replay."""

import dataclasses
import math

from repertory.agents import agent_config, config_checks
from repertory.components import settings


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReplayConfig(agent_config.AgentConfig):
  """Settings of an agent that replays.

  The agent gives a default to what has none here. The limit that the error
  buffer must keep is checked with the table.

  Attributes:
    batch_size: Items a gradient step samples.
    prioritized: Whether to sample by priority, or uniformly.
    max_replay_size: Items the table holds.
    min_replay_size: Items before learning starts.
    samples_per_insert: Mean draws per item.
  """

  batch_size: int
  prioritized: bool
  num_sgd_steps_per_step: int = settings.field(
    1,
    'Gradient steps of a learner step, each from a batch of its own: cheaper '
    'for small networks, and rarer, for samples_per_insert stays. All batches '
    'are drawn before priorities change. With more than 1, settings in '
    'learner steps count gradient steps.',
  )
  priority_exponent: float = settings.field(
    0.6, 'α of the priorities: Ape-X, arXiv:1803.00933, appendix C.'
  )
  importance_exponent: float = settings.field(
    0.4, 'β of the importance weights: Ape-X, appendix C.'
  )
  importance_anneal_learner_steps: int | None = settings.field(
    None,
    'Learner steps in which β rises to 1, linearly; None for never. Rainbow, '
    'arXiv:1710.02298, table 1, lets it rise over a run.',
  )
  min_priority: float = settings.field(
    1e-3, 'Smallest priority, so that no item is lost for ever.'
  )
  max_replay_size: int
  min_replay_size: int
  samples_per_insert: float
  error_buffer: float | None = settings.field(
    None,
    'Lead of acting or learning, in samples; None for 10 % of the samples due '
    'at min_replay_size, but at least twice what actors and learner need to '
    'take turns.',
  )

  def __post_init__(self):
    super().__post_init__()
    config_checks.check_at_least(
      self,
      1,
      'num_sgd_steps_per_step',
      'max_replay_size',
      'min_replay_size',
      'importance_anneal_learner_steps',
    )
    config_checks.check_at_least(self, 0, 'priority_exponent')
    config_checks.check_positive(self, 'min_priority', 'samples_per_insert')
    config_checks.check_fraction(self, 'importance_exponent')

  @property
  def items_per_step(self) -> int:
    """Items a learner step samples."""
    return self.batch_size * self.num_sgd_steps_per_step

  @property
  def steps_until_xla_pays(self) -> int:
    return math.ceil(self.xla_pays_after / self.num_sgd_steps_per_step)
