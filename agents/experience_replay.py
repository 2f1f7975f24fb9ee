"""Replay of agents that sample a large table, by priority or uniformly."""

import dataclasses
from typing import Any

import tensorflow as tf

from repertory.agents import agent_config, config_checks
from repertory.components import (
  adders,
  losses,
  replay,
  settings,
  specs,
  types,
)
from repertory.components import experience as experience_lib

# What the tables' settings are called here.
_SETTING_NAMES = {'max_size': 'max_replay_size', 'min_size': 'min_replay_size'}


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReplayConfig(agent_config.AgentConfig):
  """Settings of an agent that replays.

  The agent gives a default to what has none here. The limit that the error
  buffer must keep is checked with the table.

  Attributes:
    batch_size: Items a learner step samples.
    prioritized: Whether to sample by priority, or uniformly.
    max_replay_size: Items the table holds.
    min_replay_size: Items before learning starts.
    samples_per_insert: Mean draws per item.
  """

  batch_size: int
  prioritized: bool
  priority_exponent: float = settings.field(
    0.6, 'α of the priorities: Ape-X, arXiv:1803.00933, appendix C.'
  )
  importance_exponent: float = settings.field(
    0.4, 'β of the importance weights: Ape-X, appendix C.'
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
    config_checks.check_at_least(self, 1, 'max_replay_size', 'min_replay_size')
    config_checks.check_at_least(self, 0, 'priority_exponent')
    config_checks.check_positive(self, 'min_priority', 'samples_per_insert')
    config_checks.check_fraction(self, 'importance_exponent')


def error_buffer(config: ReplayConfig, items_per_insert: int) -> float:
  """Returns the lead that either side may take, in samples.

  Args:
    config: Says it, or what it follows from.
    items_per_insert: The most items that one step of all environments makes.
  """
  if config.error_buffer is not None:
    return config.error_buffer
  return replay.default_error_buffer(
    config.samples_per_insert,
    config.min_replay_size,
    batch_size=config.batch_size,
    items_per_insert=items_per_insert,
  )


def describe(
  config: ReplayConfig,
  items: adders.Items,
  spec: specs.EnvironmentSpec,
  num_environments: int,
  **others: Any,
) -> experience_lib.Experience:
  """Describes the experience.

  Args:
    config: How items are kept and sampled.
    items: What the table holds.
    num_environments: Over all actors.
    **others: Further settings of the experience.
  """
  signature = items.signature(spec)
  rate_limit = replay.RateLimit(
    samples_per_insert=config.samples_per_insert,
    min_size=config.min_replay_size,
    error_buffer=error_buffer(
      config, num_environments * items.max_items_per_step
    ),
  )
  if config.prioritized:
    table = replay.prioritized(
      signature, config.max_replay_size, rate_limit, config.priority_exponent
    )
  else:
    table = replay.uniform(signature, config.max_replay_size, rate_limit)
  return experience_lib.Experience(
    items,
    [table],
    batch_size=config.batch_size,
    prefetch=config.prefetch,
    min_priority=config.min_priority if config.prioritized else None,
    setting_names=_SETTING_NAMES,
    **others,
  )


def importance_weights(config: ReplayConfig, sample: types.Sample) -> tf.Tensor:
  """Returns the items' weights in the loss, `[B]`; 1 if sampling is uniform."""
  if not config.prioritized:
    return tf.ones_like(sample.probabilities, tf.float32)
  return losses.importance_weights(
    sample.probabilities, sample.table_sizes, config.importance_exponent
  )
