"""Replay tables, described before they exist.

A description is data: it can be checked, printed, sent to other processes and
compared with a checkpoint before anything starts. `reverb_tables` turns it into
a table.
"""

import dataclasses
import functools
from collections.abc import Callable, Mapping

import numpy as np
import tensorflow as tf
import tree

from repertory.components import types
from repertory.components.replay import packing, rate_limiters
from repertory.components.settings import SettingError

DEFAULT_TABLE = 'replay'
# Of items with targets, see `Experience.labeled`.
TRAIN_BUFFER = 'train_buffer'

# How an item is chosen: with a probability that grows with its priority; or
# evenly, the oldest, the newest, that of the least or the largest priority.
PRIORITIZED = 'prioritized'
_SELECTORS = ('uniform', 'fifo', 'lifo', 'min_heap', 'max_heap')

# What an item and each of its columns take besides their data, measured: keys,
# priorities, and the messages around the chunks.
_ITEM_BYTES, _COLUMN_BYTES = 300, 1200

# What costs Reverb as much to handle as it costs to handle an item at all.
_MAX_BUNDLE_BYTES = 2**18

# Reverb's counts of items and samples have 32 bits.
_MAX_INTEGER = 2**31 - 1

# Of the frames of a game, which Reverb stores as differences: 6 or more.
_IMAGE_COMPRESSION = 6


@dataclasses.dataclass(frozen=True)
class Table:
  """A replay table.

  Attributes:
    name: Unique among the tables of an agent.
    signature: Nest of `tf.TensorSpec` of one item.
    max_size: Items it holds; then the remover takes one for each new item.
    rate_limit: The ratio of samples to inserts; None makes a queue, in which
      inserts wait while it is full and samples while it is empty.
    sampler: How items to sample are chosen: 'uniform', 'fifo', 'lifo',
      'min_heap' or 'max_heap' of priorities, or 'prioritized'.
    remover: How items to remove are chosen; not 'prioritized'.
    priority_exponent: α, if the sampler is 'prioritized': item i is sampled
      with probability p_i^α / Σ_j p_j^α. Else None.
    max_times_sampled: After so many samples an item leaves; 0 for no limit.
    bundle_size: Items that Reverb holds, counts and samples as one. All counts
      here and in `TableStatus` are of items nevertheless.
  """

  name: str
  signature: types.Nest
  max_size: int
  rate_limit: rate_limiters.RateLimit | None
  sampler: str = 'uniform'
  remover: str = 'fifo'
  priority_exponent: float | None = None
  max_times_sampled: int = 0
  bundle_size: int = 1

  def __post_init__(self):
    exponent = self.priority_exponent
    for name, known in (
      ('sampler', (*_SELECTORS, PRIORITIZED)),
      ('remover', _SELECTORS),
    ):
      if getattr(self, name) not in known:
        raise ValueError(
          f"{name} of table '{self.name}' must be one of {', '.join(known)}; "
          f'got {getattr(self, name)!r}.'
        )
    if (self.sampler == PRIORITIZED) != (exponent is not None):
      raise ValueError(
        f"priority_exponent of table '{self.name}' must be a number if its "
        f"sampler is '{PRIORITIZED}', else None; got {exponent} and "
        f"'{self.sampler}'."
      )
    if exponent is not None and not exponent >= 0:
      raise SettingError(
        'priority_exponent', f'must be at least 0, got {exponent}.'
      )

  @functools.cached_property
  def packing(self) -> packing.Packing:
    """How its items are stored."""
    return packing.Packing(self.signature, self.bundle_size)

  @property
  def is_queue(self) -> bool:
    """Whether each item is sampled once, in the order of insertion."""
    return (
      self.rate_limit is None
      and self.sampler == 'fifo'
      and self.max_times_sampled == 1
    )

  @property
  def description(self) -> str:
    """Tells, in a line, what a checkpoint's items must be of to fit in it."""
    signature = ', '.join(
      f'{"/".join(map(str, path))} {spec.shape} {spec.dtype.name}'
      for path, spec in tree.flatten_with_path(self.signature)
    )
    return (
      f'max_size={self.max_size}, {self.rate_limit}, '
      f'max_times_sampled={self.max_times_sampled}, signature={signature}'
    )

  def bundled(self, size: int) -> 'Table':
    """Returns a queue that holds its items in bundles.

    What an item costs Reverb hardly depends on its size. So bundles spare most
    of that where items are small, made several at a time, and taken in order.

    Args:
      size: Items that are made at a time, and by which the learner's batch can
        be divided. Bundles have so many, or if items are large, as many of them
        as keep a bundle small.

    Raises:
      ValueError: If this is not a queue.
    """
    if not self.is_queue:
      raise ValueError(
        f"Table '{self.name}' must be a queue to hold bundles: what is drawn "
        'by chance must not come in company.'
      )
    if size < 1:
      raise ValueError(f'size must be at least 1, got {size}.')
    most = min(size, self.max_size, _MAX_BUNDLE_BYTES // self.item_bytes)
    divisors = [n for n in range(1, most + 1) if size % n == 0]
    return dataclasses.replace(self, bundle_size=max(divisors, default=1))

  def sample_target(self, inserts: int) -> float:
    """Returns the draws that are due after `inserts` items."""
    return (
      self.rate_limit.sample_target(inserts) if self.rate_limit else inserts
    )

  @property
  def min_size(self) -> int:
    """Items it must hold to be sampled from."""
    return self.rate_limit.min_size if self.rate_limit else 1

  @functools.cached_property
  def item_bytes(self) -> int:
    """Estimates what an item takes of the server's memory, at most.

    Reverb compresses what it holds; that is not counted. Of a transition, large
    leaves of the next observation are not counted either: they are those of a
    later one, but at an episode's end.
    """
    return self._estimate_bytes(_num_bytes)

  @functools.cached_property
  def least_item_bytes(self) -> int:
    """The same, with images as small as Reverb commonly makes them."""
    return self._estimate_bytes(_num_compressed_bytes)

  def _estimate_bytes(self, num_bytes: Callable[[tf.TensorSpec], int]) -> int:
    columns = packing.Packing(self.signature).stored_signature
    size = _ITEM_BYTES + _COLUMN_BYTES * len(columns)
    size += sum(num_bytes(column) for column in columns)
    if isinstance(self.signature, types.Transition):
      after = self.signature.next_observation
      leaves, shared = tree.flatten(after), packing.Packing(after).whole
      size -= sum(_COLUMN_BYTES + num_bytes(leaves[i]) for i in shared)
    return size

  def check(
    self,
    batch_size: int,
    items_per_insert: int,
    names: Mapping[str, str] | None = None,
  ) -> None:
    """Refuses what could never run or is beyond Reverb's integers.

    See `rate_limiters.check`.

    Args:
      batch_size: Items the learner draws at once.
      items_per_insert: The most items one step of all environments can make.
      names: What the errors call 'max_size' and 'min_size', if not that.

    Raises:
      SettingError: Naming the setting to change.
    """
    called = rate_limiters.NamesOf(names)
    for name in ('max_size', 'max_times_sampled'):
      if getattr(self, name) > _MAX_INTEGER:
        raise SettingError(
          called[name],
          f"of table '{self.name}' must be at most {_MAX_INTEGER}, got "
          f'{getattr(self, name)}.',
        )
    if self.rate_limit:
      rate_limiters.check(
        self.rate_limit,
        table=self.name,
        max_size=self.max_size,
        batch_size=batch_size,
        items_per_insert=items_per_insert,
        max_times_sampled=self.max_times_sampled,
        names=names,
      )
    elif self.max_size < batch_size + items_per_insert:
      raise SettingError(
        called['max_size'],
        f"of queue '{self.name}' must be at least batch_size + items per step "
        f'= {batch_size} + {items_per_insert} items, or it could fill up '
        f'before a batch is ready; got {self.max_size}.',
      )


def uniform(
  signature: types.Nest,
  max_size: int,
  rate_limit: rate_limiters.RateLimit,
  name: str = DEFAULT_TABLE,
) -> Table:
  """Describes a table whose items are all as likely to be sampled."""
  return Table(name, signature, max_size, rate_limit)


def prioritized(
  signature: types.Nest,
  max_size: int,
  rate_limit: rate_limiters.RateLimit,
  priority_exponent: float,
  name: str = DEFAULT_TABLE,
) -> Table:
  """Describes a table that samples item i with probability p_i^α / Σ_j p_j^α.

  Args:
    signature: Nest of `tf.TensorSpec` of one item.
    max_size: Items it holds.
    rate_limit: The ratio of samples to inserts.
    priority_exponent: α, see https://arxiv.org/abs/1511.05952, equation 1.
    name: The table's name.
  """
  return Table(
    name,
    signature,
    max_size,
    rate_limit,
    sampler=PRIORITIZED,
    priority_exponent=priority_exponent,
  )


def queue(
  signature: types.Nest, max_size: int, name: str = DEFAULT_TABLE
) -> Table:
  """Describes a queue: first in, first out, each item sampled once."""
  return Table(
    name,
    signature,
    max_size,
    rate_limit=None,
    sampler='fifo',
    max_times_sampled=1,
  )


def _num_compressed_bytes(spec: tf.TensorSpec) -> int:
  is_image = spec.dtype == tf.uint8 and spec.shape.rank >= 2
  return _num_bytes(spec) // (_IMAGE_COMPRESSION if is_image else 1)


def _num_bytes(spec: tf.TensorSpec) -> int:
  shape = spec.shape.as_list()
  return spec.dtype.size * int(np.prod(shape, dtype=np.int64))
