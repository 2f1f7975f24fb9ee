"""How what was lived becomes what is learned from, as data."""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf

from repertory.components import adders, replay, types
from repertory.components.settings import SettingError


@dataclasses.dataclass(frozen=True)
class Experience:
  """Which items are made, how they are kept, and how they are learned from.

  It has no connection and no thread: a road, see `roads.Road`, reads it and
  carries the items. Another road reads the same description.

  Attributes:
    items: What becomes of the steps: `adders.Transitions`, `adders.Sequences`
      or one's own `adders.Items`.
    tables: Where items are kept: actors write to the first, and the learner
      samples it, or who computes targets for it.
    batch_size: Items that a learner step takes from the table.
    num_demonstrations: Items of data that it takes besides, see
      `with_demonstrations`.
    prefetch: Batches prepared ahead of the learner, where a replay server has
      the items. From a table of the same process they are drawn when they are
      asked for.
    min_priority: The learner gives the items that it took new priorities, of
      this at the least; None if it gives none.
    max_pending_items_per_environment: Items of each environment that may be on
      their way while it acts: more hide the way's latency, fewer keep data
      fresh.
    in_bundles: Whether a queue may hold its items in bundles, see
      `replay.Table.bundled`. Not if slots do not all end their items at the
      same steps although `items` says so, nor if batches are made in another
      way that knows no bundles.
    is_of_data: Whether there is nothing to learn from but data, see `of_data`.
    labeled: How items are learned from whose targets others compute: they take
      `batch_size` items at a time from the table here, and write them to the
      table there, which the learner samples; see `with_bellman_updaters`. None
      if the learner takes them from the table here.
    setting_names: What the agent's config calls 'batch_size', and of the tables
      'max_size' and 'min_size', for errors.
  """

  items: adders.Items
  tables: Sequence[replay.Table]
  batch_size: int
  prefetch: int = 1
  min_priority: float | None = None
  max_pending_items_per_environment: int = 4
  in_bundles: bool = True
  setting_names: Mapping[str, str] = dataclasses.field(default_factory=dict)
  num_demonstrations: int = 0
  is_of_data: bool = False
  labeled: 'Experience | None' = None

  def __post_init__(self):
    names = [table.name for table in self.tables]
    if not names or len(set(names)) < len(names):
      raise ValueError(
        'tables of an experience must be one table or more, of different '
        f'names; got {names}.'
      )

  @classmethod
  def of_data(
    cls, items: adders.Items, signature: types.Nest, batch_size: int
  ) -> 'Experience':
    """Returns that of an agent that learns from data, and nothing else.

    All items are drawn uniformly. There is nobody who acts to be limited, and
    the table has room for whatever data there are; see `roads.DataRoad`.

    Args:
      items: What is cut from the episodes.
      signature: What `items.signature` returns for the environment.
      batch_size: Items that a learner step takes.
    """
    table = replay.uniform(signature, 1, replay.UNLIMITED)
    return cls(items, [table], batch_size, is_of_data=True)

  @property
  def demonstrated(self) -> 'Experience':
    """That of the demonstrations alone."""
    return self.of_data(
      self.items, self.table.signature, self.num_demonstrations
    )

  @property
  def table(self) -> replay.Table:
    """The one that actors write to, and that is sampled."""
    return self.tables[0]

  @property
  def all_tables(self) -> Sequence[replay.Table]:
    """With those of `labeled`."""
    return [*self.tables, *(self.labeled.tables if self.labeled else [])]

  @property
  def learned(self) -> 'Experience':
    """That from which the learner takes its batches: `labeled`, or this."""
    return self.labeled or self

  @property
  def rows(self) -> int:
    """Items of a batch, with those of data."""
    return self.batch_size + self.num_demonstrations

  @property
  def called(self) -> replay.NamesOf:
    """What errors call settings of batches and tables."""
    return replay.NamesOf(self.setting_names)

  def max_pending_items(self, batch_size: int) -> int:
    """Returns the items of so many environments that may be on their way."""
    return self.max_pending_items_per_environment * batch_size

  @property
  def bundle_sizes(self) -> dict[str, int]:
    """Items of a bundle, by table."""
    return {table.name: table.bundle_size for table in self.tables}

  def with_table(self, **changes: Any) -> 'Experience':
    """Returns the same, but for fields of the first table."""
    table = dataclasses.replace(self.table, **changes)
    return dataclasses.replace(self, tables=[table, *self.tables[1:]])

  def with_bellman_updaters(
    self,
    signature: types.Nest,
    max_size: int,
    samples_per_target: float,
    batch_size: int,
    setting_names: Mapping[str, str] | None = None,
  ) -> 'Experience':
    """Returns the same, but that others compute targets, and write them on.

    They write to a table of which the learner draws uniformly, as soon as there
    are enough for a batch. `batch_size` here becomes what they take at a time;
    the ratio of their table is theirs.

    Args:
      signature: Nest of `tf.TensorSpec`: data and target of `types.Labeled`.
      max_size: Finished items that are held.
      samples_per_target: Mean draws of each.
      batch_size: Items that a learner step takes.
      setting_names: What the agent's config calls these, for errors.
    """
    limit = replay.RateLimit.with_default_buffer(
      samples_per_target,
      min_size=batch_size,
      batch_size=batch_size,
      items_per_insert=self.rows,
    )
    data, target = signature
    item = types.Labeled(data, target, version=tf.TensorSpec([], tf.int64))
    table = replay.uniform(item, max_size, limit, replay.TRAIN_BUFFER)
    labeled = dataclasses.replace(
      self,
      tables=[table],
      batch_size=batch_size,
      min_priority=None,
      setting_names=setting_names or {},
    )
    return dataclasses.replace(self, labeled=labeled)

  def updates_due(self, num_items: int) -> int:
    """Returns how many learner steps are due after so many items, in all."""
    due = int(self.table.sample_target(num_items) // self.batch_size)
    return self.labeled.updates_due(due * self.rows) if self.labeled else due

  def with_demonstrations(self, fraction: float) -> 'Experience':
    """Returns the same, but that a share of every batch comes from data.

    A learner step takes as many items as before, and so fewer from the table,
    which gives as many fewer for each that it gets: so the ratio of learner
    steps to acting stays.

    Args:
      fraction: The share of data; the number of items is rounded.

    Raises:
      SettingError: If nothing of either would be in a batch.
    """
    size = self.batch_size
    count = round(fraction * size)
    if not 0 < count < size:
      raise SettingError(
        'demonstration_fraction',
        f'must leave items of both in a batch of {size}; got {fraction:g}, '
        f'which is {count} of data.',
      )
    limit = self.table.rate_limit
    if limit is not None:
      ratio = limit.samples_per_insert * (size - count) / size
      limit = dataclasses.replace(limit, samples_per_insert=ratio)
    shared = self.with_table(rate_limit=limit)
    return dataclasses.replace(
      shared, batch_size=size - count, num_demonstrations=count
    )

  def bundled(self, num_slots: int) -> 'Experience':
    """Returns the same, with a queue in bundles where that is possible.

    Args:
      num_slots: What the environments of every adder are a multiple of.
    """
    if not self.table.is_queue or self.labeled is not None:
      return self
    size = 1
    if self.in_bundles and self.items.slots_end_together:
      size = math.gcd(num_slots, self.batch_size)
    tables = [self.table.bundled(size), *self.tables[1:]]
    return dataclasses.replace(self, tables=tables)

  def check(self, num_environments: int) -> None:
    """Refuses tables under which somebody would wait for ever.

    Args:
      num_environments: Over all actors.

    Raises:
      SettingError: Naming the setting to change.
    """
    for table in self.tables:
      table.check(
        self.batch_size,
        num_environments * self.items.max_items_per_step,
        self.setting_names,
      )
    if self.labeled is None:
      return
    for table in self.labeled.tables:
      table.check(
        self.labeled.batch_size, self.rows, self.labeled.setting_names
      )
