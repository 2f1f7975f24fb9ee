"""Replay of agents that sample a large table, by priority or uniformly."""

from typing import Any

import tensorflow as tf

from repertory.agents import replay_config
from repertory.components import (
  adders,
  losses,
  replay,
  specs,
  types,
)
from repertory.components import experience as experience_lib

# What the tables' settings are called here.
_SETTING_NAMES = {'max_size': 'max_replay_size', 'min_size': 'min_replay_size'}


def error_buffer(
  config: replay_config.ReplayConfig, items_per_insert: int
) -> float:
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
  config: replay_config.ReplayConfig,
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


def importance_weights(
  config: replay_config.ReplayConfig, sample: types.Sample
) -> tf.Tensor:
  """Returns the items' weights in the loss, `[B]`; 1 if sampling is uniform."""
  if not config.prioritized:
    return tf.ones_like(sample.probabilities, tf.float32)
  return losses.importance_weights(
    sample.probabilities, sample.table_sizes, config.importance_exponent
  )
