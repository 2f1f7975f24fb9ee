"""Declarative description of an agent's experience: items, tables, batches."""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

from repertory.components import adders, replay, types
from repertory.components.config.settings import SettingError


@dataclasses.dataclass(frozen=True)
class Experience:
  """Items an agent writes, the tables that store them, and its batches.

  It has no connection and no thread: a transport reads it and carries the
  items, see `transports.Transport`. Every transport reads the same description.

  Attributes:
    items: Items made of the steps: `adders.Transitions`, `adders.Sequences` or
      a custom `adders.ItemSpec`.
    tables: The replay table, in a sequence: actors write to it, and the learner
      samples it, or the Bellman updaters.
    batch_size: Items per learner step from the table.
    num_demonstrations: Additional items per learner step from a data set, see
      `with_demonstrations`.
    prefetch: Batches prefetched for the learner, if a replay server has the
      items. From a table in the same process they are sampled on demand.
    min_priority: Lower bound on the new priorities that the learner assigns to
      sampled items; None if it assigns none.
    max_pending_items_per_environment: Items of each environment that may be in
      flight while it acts: more hide latency, fewer keep data fresh.
    is_offline: Whether the agent learns from a data set only, see `offline`.
    with_targets: Experience with targets from Bellman updaters: they sample
      `batch_size` items at a time from this table, and write them with targets,
      as `types.SampleWithTargets`, to that one, which the learner samples. None
      if the learner samples this table.
    setting_names: Names in the agent's config of 'batch_size', and of the
      tables' 'max_size' and 'min_size', for errors.
  """

  items: adders.ItemSpec
  tables: Sequence[replay.TableSpec]
  batch_size: int
  prefetch: int = 1
  min_priority: float | None = None
  max_pending_items_per_environment: int = 4
  setting_names: Mapping[str, str] = dataclasses.field(default_factory=dict)
  num_demonstrations: int = 0
  is_offline: bool = False
  with_targets: 'Experience | None' = None

  def __post_init__(self):
    if len(self.tables) != 1:
      names = [table.name for table in self.tables]
      raise ValueError(f'tables must be one table, got {names}.')
    if self.min_priority is not None and not self.min_priority > 0:
      raise SettingError(
        'min_priority', f'must be positive, got {self.min_priority}.'
      )

  @classmethod
  def offline(
    cls, items: adders.ItemSpec, signature: types.Nest, batch_size: int
  ) -> 'Experience':
    """Returns the experience of an offline agent.

    All items of the signature are sampled uniformly, without a rate limit or
    bounds; see `transports.OfflineTransport`.
    """
    table = replay.uniform(signature, 1, replay.UNLIMITED)
    return cls(items, [table], batch_size, is_offline=True)

  @property
  def demonstrated(self) -> 'Experience':
    """The experience of the demonstrations alone."""
    return self.offline(
      self.items.of_data, self.table.signature, self.num_demonstrations
    )

  @property
  def table(self) -> replay.TableSpec:
    """The table that actors write to, and that is sampled."""
    return self.tables[0]

  @property
  def all_tables(self) -> Sequence[replay.TableSpec]:
    """All tables, including that of `with_targets`."""
    if self.with_targets is None:
      return [self.table]
    return [self.table, self.with_targets.table]

  @property
  def learned(self) -> 'Experience':
    """Experience that the learner samples: `with_targets` if given."""
    return self.with_targets or self

  @property
  def rows(self) -> int:
    """Items of a batch, demonstrations included."""
    return self.batch_size + self.num_demonstrations

  @property
  def called(self) -> replay.NamesOf:
    """Names of batch and table settings in error messages."""
    return replay.NamesOf(self.setting_names)

  @property
  def bundle_sizes(self) -> dict[str, int]:
    """Items per bundle, by table."""
    return {self.table.name: self.table.bundle_size}

  def with_table(self, **changes: Any) -> 'Experience':
    """Returns a copy with changed fields of the table."""
    table = dataclasses.replace(self.table, **changes)
    return dataclasses.replace(self, tables=[table])

  def max_items(self, max_steps: int, num_environments: int) -> int:
    """Returns the maximum number of items of a run of `max_steps`.

    The last step of all environments may go beyond it.
    """
    return self.items.max_items(max_steps + num_environments - 1)

  def updates_due(self, num_items: int) -> int:
    """Returns the total learner steps due after `num_items` inserted items."""
    due = int(self.table.sample_target(num_items) // self.batch_size)
    if self.with_targets is None:
      return due
    return self.with_targets.updates_due(due * self.rows)

  def with_demonstrations(self, fraction: float) -> 'Experience':
    """Returns a copy that takes a share of every batch from a data set.

    The batch size and the ratio of learner steps to acting stay: fewer items
    come from the table, with accordingly fewer samples per insert. The number
    of demonstrations is rounded.

    Raises:
      SettingError: If a batch would not contain items of both kinds.
    """
    size = self.batch_size
    count = round(fraction * size)
    if not 0 < count < size:
      raise SettingError(
        'demonstration_fraction',
        f'must leave items of both kinds in a batch of {size}, got '
        f'{fraction:g}, which makes {count} demonstrations.',
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
    """Returns a copy with its queue in bundles, where that is possible.

    `num_slots` is a common divisor of the adders' batch sizes.
    """
    if not (self.table.is_queue and self.items.slots_end_together):
      return self
    table = self.table.bundled(math.gcd(num_slots, self.batch_size))
    return self.with_table(bundle_size=table.bundle_size)

  def check(self, num_environments: int) -> None:
    """Refuses tables that would block actors or the learner for ever.

    `num_environments` is the total over all actors. Raises a SettingError that
    names the setting to change.
    """
    num_items = num_environments * self.items.max_items_per_step
    self.table.check(self.batch_size, num_items, self.setting_names)
    if (targets := self.with_targets) is not None:
      targets.table.check(targets.batch_size, self.rows, targets.setting_names)
