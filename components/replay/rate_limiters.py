"""The ratio of acting to learning, and whether it can work at all."""

import dataclasses
import math
from collections.abc import Mapping

from repertory.components.settings import SettingError

# Of a default error buffer, in samples due at the minimal size.
_BUFFER_SHARE = 0.1


@dataclasses.dataclass(frozen=True)
class RateLimit:
  """Keeps sampling and inserting in step, whichever side is faster.

  With e = inserts × `samples_per_insert` − samples, inserts wait above
  `samples_per_insert` × `min_size` + `error_buffer` and samples wait below
  `samples_per_insert` × `min_size` − `error_buffer`.

  Attributes:
    samples_per_insert: Mean draws per *item* (not batch or environment step).
    min_size: Items held before the first sample, at least 1.
    error_buffer: Lead either side may take, in samples; at least
      `max(1, samples_per_insert)`, or both could wait for ever.
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
        'inserting and sampling could both wait for ever; got '
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
    """Returns one whose buffer is `default_error_buffer`, of the same numbers.

    Args:
      samples_per_insert: Mean draws per item.
      min_size: Items held before the first sample.
      batch_size: Items the learner draws at once.
      items_per_insert: The most items that one step of all environments makes.
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
    """Returns the draws that keep the ratio exactly after `inserts` items."""
    return max(0, inserts - self.min_size) * self.samples_per_insert


# Nobody waits, once there is an item.
UNLIMITED = RateLimit(1.0, min_size=1, error_buffer=math.inf)


def default_error_buffer(
  samples_per_insert: float,
  min_size: int,
  *,
  batch_size: int,
  items_per_insert: int,
) -> float:
  """Returns a lead, in samples, that keeps acting and learning close.

  It is a tenth of the samples due at `min_size`, but at least twice what a
  learner and actors that take turns need: see `check`.

  Args:
    samples_per_insert: Mean draws per item.
    min_size: Items held before the first sample.
    batch_size: Items the learner draws at once.
    items_per_insert: The most items that one step of all environments makes.
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
  """Refuses limits under which a learner or an actor would wait for ever.

  Args:
    limit: What the table will enforce.
    table: The table's name, for the error.
    max_size: Items the table can hold.
    batch_size: Items the learner draws at once.
    items_per_insert: The most items one thread inserts before it lets the
      learner go on: all that one step of its environments can make.
    max_times_sampled: After so many samples an item leaves; 0 for no limit.
    names: What the errors call 'max_size', 'min_size' and others, if not that.

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
      f'{items_per_insert} = {needed:g}, or a learner and an actor that take '
      f'turns would both wait for ever; got {limit.error_buffer:g}. Raise it, '
      'or lower the others.',
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
  """Refuses limits that count on samples of items that are gone."""
  if limit.samples_per_insert > max_times_sampled:
    raise SettingError(
      called['max_times_sampled'],
      f"of table '{table}' must be at least samples_per_insert = "
      f'{limit.samples_per_insert:g}, or its items are gone before the learner '
      f'has drawn its share; got {max_times_sampled}.',
    )
  if max_size < limit.min_size + turn:
    raise SettingError(
      called['max_size'],
      f"of table '{table}', whose items leave once they were sampled, must be "
      f'at least {called["min_size"]} + (batch_size + items per step) = '
      f'{limit.min_size} + {turn}, or items are lost before the learner has '
      f'drawn its share; got {max_size}.',
    )


class NamesOf(dict):
  """What an agent calls the settings of its tables; else as tables do."""

  def __init__(self, names: Mapping[str, str] | None):
    super().__init__(names or {})

  def __missing__(self, name: str) -> str:
    return name
