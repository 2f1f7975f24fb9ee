"""Rate limits of replay tables, and their validation."""

import dataclasses
import math
from collections.abc import Mapping

from repertory.components.config.settings import SettingError

# Default error buffer, as a share of the samples due at the minimal size.
_BUFFER_SHARE = 0.1


@dataclasses.dataclass(frozen=True)
class RateLimit:
  """Keeps inserts and samples at a fixed ratio.

  With e = inserts × `samples_per_insert` − samples, inserts wait above
  `samples_per_insert` × `min_size` + `error_buffer` and samples wait below
  `samples_per_insert` × `min_size` − `error_buffer`.

  Attributes:
    samples_per_insert: Mean samples per *item* (not batch or environment step).
    min_size: Items in the table before the first sample, at least 1.
    error_buffer: Maximum lead of either side, in samples; at least `max(1,
      samples_per_insert)`, or both could wait forever.
  """

  samples_per_insert: float
  min_size: int
  error_buffer: float

  def __post_init__(self):
    if not 0 < self.samples_per_insert < float('inf'):
      raise SettingError(
        'samples_per_insert',
        f'must be positive and finite, got {self.samples_per_insert}.',
      )
    if self.min_size < 1:
      raise SettingError(
        'min_size', f'must be at least 1, got {self.min_size}.'
      )
    smallest = max(1.0, self.samples_per_insert)
    if not self.error_buffer >= smallest:
      raise SettingError(
        'error_buffer',
        f'must be at least max(1, samples_per_insert) = {smallest:g}, or '
        'inserting and sampling could both wait forever; got '
        f'{self.error_buffer}.',
      )

  @classmethod
  def with_default_buffer(
    cls,
    samples_per_insert: float,
    min_size: int,
    *,
    batch_size: int,
    items_per_insert: int = 1,
  ) -> 'RateLimit':
    """Returns a rate limit with the buffer of `default_error_buffer`.

    Args:
      samples_per_insert: Mean samples per item.
      min_size: Items in the table before the first sample.
      batch_size: Items of each update.
      items_per_insert: Maximum items that one step of all environments creates.
    """
    return cls(
      samples_per_insert,
      min_size,
      default_error_buffer(
        samples_per_insert,
        min_size,
        batch_size=batch_size,
        items_per_insert=items_per_insert,
      ),
    )

  def sample_target(self, inserts: int) -> float:
    """Returns the number of samples due after `inserts` items."""
    return max(0, inserts - self.min_size) * self.samples_per_insert


# Never blocks once the table has an item.
UNLIMITED = RateLimit(1.0, min_size=1, error_buffer=math.inf)


def default_error_buffer(
  samples_per_insert: float,
  min_size: int,
  *,
  batch_size: int,
  items_per_insert: int,
) -> float:
  """Returns an error buffer, in samples, that keeps acting and learning close.

  It is a tenth of the samples due at `min_size`, but at least twice the minimum
  of `check`.

  Args:
    samples_per_insert: Mean samples per item.
    min_size: Items in the table before the first sample.
    batch_size: Items of each update.
    items_per_insert: Maximum items that one step of all environments creates.
  """
  turn = batch_size + samples_per_insert * items_per_insert
  return max(_BUFFER_SHARE * samples_per_insert * min_size, 2 * turn)


def check(
  limit: RateLimit,
  *,
  table: str,
  max_size: int,
  batch_size: int,
  items_per_insert: int,
  max_times_sampled: int = 0,
  names: Mapping[str, str] | None = None,
) -> None:
  """Raises an error if the learner or an actor would wait forever.

  Args:
    limit: The rate limit of the table.
    table: Name of the table, for the error.
    max_size: Capacity of the table, in items.
    batch_size: Items of each update.
    items_per_insert: Maximum items that one thread inserts before the learner
      can continue: those of one step of all its environments.
    max_times_sampled: Samples after which an item is removed; 0 for no limit.
    names: Names of 'max_size', 'min_size' and other settings in errors, where
      they differ.

  Raises:
    SettingError: Naming the setting to change.
  """
  called = NamesOf(names)
  if max_size < 1:
    raise SettingError(
      called['max_size'],
      f"of table '{table}' must be at least 1, got {max_size}.",
    )
  if limit.min_size > max_size:
    raise SettingError(
      called['min_size'],
      f"of table '{table}' must be at most {called['max_size']} = {max_size}, "
      f'or it can never be sampled; got {limit.min_size}.',
    )
  needed = batch_size + limit.samples_per_insert * items_per_insert
  if limit.error_buffer < needed:
    raise SettingError(
      called['error_buffer'],
      f"of table '{table}' must be at least {called['batch_size']} + "
      f'samples_per_insert × '
      f'items per step = {batch_size} + {limit.samples_per_insert:g} × '
      f'{items_per_insert} = {needed:g}, or a learner and an actor that '
      f'alternate would both wait forever; got {limit.error_buffer:g}. Raise '
      'it, or lower the others.',
    )
  if max_times_sampled:
    _check_items_that_leave(
      limit,
      table,
      max_size,
      batch_size + items_per_insert,
      max_times_sampled,
      called,
    )


def _check_items_that_leave(
  limit: RateLimit,
  table: str,
  max_size: int,
  turn: int,
  max_times_sampled: int,
  called: 'NamesOf',
) -> None:
  """Raises an error if the limit needs samples of removed items."""
  if limit.samples_per_insert > max_times_sampled:
    raise SettingError(
      called['max_times_sampled'],
      f"of table '{table}' must be at least samples_per_insert = "
      f'{limit.samples_per_insert:g}, or its items are removed before the '
      f'learner has sampled its share; got {max_times_sampled}.',
    )
  if max_size < limit.min_size + turn:
    raise SettingError(
      called['max_size'],
      f"of table '{table}', whose items are removed after sampling, must be at "
      f'least {called["min_size"]} + (batch_size + items per step) = '
      f'{limit.min_size} + {turn}, or items are lost before the learner has '
      f'sampled its share; got {max_size}.',
    )


class NamesOf(dict):
  """Agent-specific names of table settings; others keep their names."""

  def __init__(self, names: Mapping[str, str] | None):
    super().__init__(names or {})

  def __missing__(self, name: str) -> str:
    return name
