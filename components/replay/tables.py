"""Descriptions of replay tables.

A description is data: it can be validated, printed, sent to other processes and
compared with a checkpoint before anything starts.
"""

import dataclasses
import functools
import os
import shutil
from collections.abc import Mapping

import tree

from repertory.components import types
from repertory.components.config.settings import SettingError
from repertory.components.replay import packing, rate_limiters

DEFAULT_TABLE = 'replay'
# Holds items with targets, see `Experience.with_targets`.
TRAIN_BUFFER = 'train_buffer'

# Measured overhead of an item with its small leaves, and of each large leaf. In
# a server: keys, priorities, and the messages around the chunks. In a process:
# priority, weight and sums; an array object and its reference.
_SERVER_BYTES, _LOCAL_BYTES = (1500, 1200), (32, 144)

# Measured memory of a stack of frames, without them.
_STACK_BYTES = 112

# Data size that costs Reverb as much as the overhead of an item.
_MAX_BUNDLE_BYTES = 2**18

# Reverb's counts of items and samples have 32 bits.
_MAX_INTEGER = 2**31 - 1

# For the frames of a game, which Reverb stores as differences: 6 or more.
_IMAGE_COMPRESSION = 6


@dataclasses.dataclass(frozen=True)
class TableInfo:
  """State of a replay table.

  Attributes:
    size: Items in the table.
    max_size: Capacity, in items.
    inserts: Items ever inserted.
    samples: Items ever sampled.
    waiting: The side that the rate limiter blocks: 'insert', 'sample' or ''.
  """

  size: int
  max_size: int
  inserts: int
  samples: int
  waiting: str = ''


@dataclasses.dataclass(frozen=True)
class TableSpec:
  """Description of a replay table.

  Attributes:
    name: Unique name among the tables of an agent.
    signature: Nest of `tf.TensorSpec` of one item.
    max_size: Capacity, in items; then each insert replaces the oldest one.
    rate_limit: Ratio of samples to inserts; None for a queue, where each item
      is sampled once, in the order of insertion, inserts wait while it is full,
      and samples while it is empty.
    priority_exponent: α of prioritized sampling: item i is sampled with
      probability p_i^α / Σ_j p_j^α. None for uniform sampling, and for queues.
    bundle_size: Items that Reverb stores, counts and samples as one. All counts
      here and in `TableInfo` are of items nevertheless.
    num_frames: Frames of each leaf of the signature that is a frame stack, 1 of
      the others; () if there are no stacks.
  """

  name: str
  signature: types.Nest
  max_size: int
  rate_limit: rate_limiters.RateLimit | None
  priority_exponent: float | None = None
  bundle_size: int = 1
  num_frames: tuple[int, ...] = ()

  def __post_init__(self):
    exponent = self.priority_exponent
    if self.is_queue and exponent is not None:
      raise ValueError(
        f"priority_exponent of queue '{self.name}' must be None, got "
        f'{exponent}.'
      )
    if exponent is not None and not exponent >= 0:
      raise SettingError(
        'priority_exponent', f'must be at least 0, got {exponent}.'
      )

  @functools.cached_property
  def packing(self) -> packing.Packing:
    """Storage layout of the items."""
    return packing.Packing(self.signature, self.bundle_size, self.num_frames)

  @property
  def is_queue(self) -> bool:
    """Whether each item is sampled once, in the order of insertion."""
    return self.rate_limit is None

  @property
  def sampler(self) -> str:
    """Name of the sampler: 'fifo', 'prioritized' or 'uniform'."""
    if self.is_queue:
      return 'fifo'
    return 'uniform' if self.priority_exponent is None else 'prioritized'

  @property
  def description(self) -> str:
    """One-line description that checkpointed items must match."""
    signature = ', '.join(
      f'{"/".join(map(str, path))} {spec.shape} {spec.dtype.name}'
      for path, spec in tree.flatten_with_path(self.signature)
    )
    return (
      f'max_size={self.max_size}, {self.rate_limit}, '
      f'max_times_sampled={int(self.is_queue)}, signature={signature}'
    )

  def bundled(self, size: int) -> 'TableSpec':
    """Returns a queue with bundles of `size` items, or of fewer large ones.

    The cost of an item in Reverb hardly depends on its size. So small items are
    stored as one that are created together, and sampled in order.
    """
    if not self.is_queue:
      raise ValueError(
        f"Table '{self.name}' must be a queue to hold bundles: randomly "
        'sampled items must not be correlated.'
      )
    num_bytes = sum(map(packing.num_bytes, tree.flatten(self.signature)))
    most = min(size, self.max_size, _MAX_BUNDLE_BYTES // max(1, num_bytes))
    divisors = [n for n in range(1, most + 1) if size % n == 0]
    return dataclasses.replace(self, bundle_size=max(divisors, default=1))

  def sample_target(self, inserts: int) -> float:
    """Returns the number of samples due after `inserts` items."""
    return (
      self.rate_limit.sample_target(inserts) if self.rate_limit else inserts
    )

  @property
  def min_size(self) -> int:
    """Minimum number of items before the first sample."""
    return self.rate_limit.min_size if self.rate_limit else 1

  def item_bytes(self, in_server: bool, is_copied: bool = False) -> int:
    """Estimates the memory of an item in a replay server, or in this process.

    A server compresses images. For transitions, large leaves of the next
    observation are ignored: they are shared with a later item, except at the
    end of an episode. So are older frames of stacks in this process. With
    `is_copied`, a checkpoint copies the small leaves.
    """
    size, per_leaf = _SERVER_BYTES if in_server else _LOCAL_BYTES
    whole, shared = self.packing.whole, range(0)
    if isinstance(self.signature, types.Transition):
      start = len(tree.flatten(self.signature[:-2]))
      shared = range(
        start, start + len(tree.flatten(self.signature.next_observation))
      )
    for i, spec in enumerate(tree.flatten(self.signature)):
      num_bytes = packing.num_bytes(spec)
      if i in self.packing.stacks and not in_server:
        num_bytes //= self.packing.stacks[i]
        size += _STACK_BYTES
      if i not in whole:
        size += num_bytes * (1 + is_copied)
      elif i not in shared:
        is_image = i in self.packing.images
        compression = _IMAGE_COMPRESSION if in_server and is_image else 1
        size += per_leaf + num_bytes // compression
      elif not in_server:
        size += per_leaf
    return size + 8 * is_copied

  def check(
    self,
    batch_size: int,
    items_per_insert: int,
    names: Mapping[str, str] | None = None,
  ) -> None:
    """Refuses deadlocks, and numbers that overflow Reverb's integers.

    Args:
      batch_size: Items of each update.
      items_per_insert: Maximum items that one step of all environments creates.
      names: Names of settings in errors, where they differ.

    Raises:
      SettingError: Naming the setting to change.
    """
    called = rate_limiters.NamesOf(names or {})
    of_table, max_size = f"of table '{self.name}'", self.max_size
    if max_size > _MAX_INTEGER:
      raise SettingError(
        called['max_size'],
        f'{of_table} must be at most {_MAX_INTEGER}, got {max_size}.',
      )
    limit = self.rate_limit
    if limit is None:
      if max_size < batch_size + items_per_insert:
        raise SettingError(
          called['max_size'],
          f"of queue '{self.name}' must be at least batch_size + items per "
          f'step = {batch_size} + {items_per_insert} items, or it could fill '
          f'up before a batch is ready; got {max_size}.',
        )
      return
    ratio, min_size = limit.samples_per_insert, limit.min_size
    if min_size > max_size:
      raise SettingError(
        called['min_size'],
        f'{of_table} must be at most {called["max_size"]} = {max_size}, or it '
        f'can never be sampled; got {min_size}.',
      )
    needed = batch_size + ratio * items_per_insert
    if limit.error_buffer < needed:
      raise SettingError(
        called['error_buffer'],
        f'{of_table} must be at least {called["batch_size"]} + '
        f'samples_per_insert × items per step = {batch_size} + {ratio:g} × '
        f'{items_per_insert} = {needed:g}, or a learner and an actor that '
        f'alternate would both wait forever; got {limit.error_buffer:g}. Raise '
        'it, or lower the others.',
      )


def uniform(
  signature: types.Nest,
  max_size: int,
  rate_limit: rate_limiters.RateLimit,
  name: str = DEFAULT_TABLE,
) -> TableSpec:
  """Describes a table with uniform sampling."""
  return TableSpec(name, signature, max_size, rate_limit)


def prioritized(
  signature: types.Nest,
  max_size: int,
  rate_limit: rate_limiters.RateLimit,
  priority_exponent: float,
) -> TableSpec:
  """Describes a table that samples item i with probability p_i^α / Σ_j p_j^α.

  See https://arxiv.org/abs/1511.05952, equation 1; α is `priority_exponent`.
  """
  return TableSpec(
    DEFAULT_TABLE, signature, max_size, rate_limit, priority_exponent
  )


def queue(
  signature: types.Nest, max_size: int, name: str = DEFAULT_TABLE
) -> TableSpec:
  """Describes a queue: first in, first out, each item sampled once."""
  return TableSpec(name, signature, max_size, rate_limit=None)


def remove_checkpoints(directory: str) -> None:
  """Removes all checkpoints in a directory, including unfinished ones.

  A replay server itself keeps the newest checkpoint, and never removes
  unfinished ones.
  """
  if os.path.isdir(directory):
    for name in os.listdir(directory):
      shutil.rmtree(os.path.join(directory, name))
