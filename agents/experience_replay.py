"""Replay of agents that sample a large table, by priority or uniformly.

`config` has the fields `samples_per_insert`, `min_replay_size`,
`max_replay_size`, `error_buffer`, `batch_size`, `prefetch`, `prioritized`,
`priority_exponent`, `importance_exponent` and `min_priority`.
"""

from typing import Any

import tensorflow as tf

from repertory.agents import config_checks
from repertory.components import adders, losses, replay, specs, types
from repertory.components import experience as experience_lib

# What the tables' settings are called here.
_SETTING_NAMES = {'max_size': 'max_replay_size', 'min_size': 'min_replay_size'}


def check_settings(config: Any) -> None:
  """Raises a ValueError if one of the fields above does not fit.

  The limit that the error buffer must keep is checked with the table.
  """
  config_checks.check_at_least(
    config, 1, 'batch_size', 'max_replay_size', 'min_replay_size'
  )
  config_checks.check_at_least(config, 0, 'priority_exponent')
  config_checks.check_positive(config, 'min_priority', 'samples_per_insert')
  config_checks.check_fraction(config, 'importance_exponent')


def error_buffer(config: Any, items_per_insert: int) -> float:
  """Returns the lead that either side may take, in samples.

  Args:
    config: See above.
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
  config: Any,
  items: adders.Items,
  spec: specs.EnvironmentSpec,
  num_environments: int,
  **settings: Any,
) -> experience_lib.Experience:
  """Describes the experience.

  Args:
    config: See above.
    items: What the table holds.
    num_environments: Over all actors.
    **settings: Further ones of the experience.
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
    **settings,
  )


def importance_weights(config: Any, sample: types.Sample) -> tf.Tensor:
  """Returns the items' weights in the loss, `[B]`; 1 if sampling is uniform."""
  if not config.prioritized:
    return tf.ones_like(sample.probabilities, tf.float32)
  return losses.importance_weights(
    sample.probabilities, sample.table_sizes, config.importance_exponent
  )
