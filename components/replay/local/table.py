"""Replay table in this process."""

import collections
import dataclasses
import math
import threading
import weakref
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from repertory.components import types
from repertory.components.config.settings import SettingError, text_of
from repertory.components.replay import (
  batches,
  packing,
  rate_limiters,
  tables,
  waits,
)
from repertory.components.replay.local import stored_arrays, sum_tree
from repertory.components.runtime import nests

# Alignment of arrays that TensorFlow uses without a copy.
_ALIGNMENT = 64


class Items(NamedTuple):
  """Items of a table.

  Attributes:
    leaves: Leaves in the order of the signature: small ones `[K, ...]`, large
      ones as objects `[K]`, arrays or stacks that never change.
    priorities: float64 `[K]`.
  """

  leaves: list[np.ndarray]
  priorities: np.ndarray

  def after(self, count: int) -> 'Items':
    """Returns views of the items without the first `count`."""
    leaves = [leaf[count:] for leaf in self.leaves]
    return Items(leaves, self.priorities[count:])


@dataclasses.dataclass(frozen=True)
class Contents:
  """Immutable copy of a table's contents.

  Attributes:
    items: All items, oldest first.
    inserts: Items ever inserted.
    samples: Items ever sampled.
    random: State of the random generator.
    actors: Serialized state of the actors, if it is saved; not interpreted.
  """

  items: Items
  inserts: int
  samples: int
  random: Mapping[str, Any]
  actors: bytes = b''


class WriterQueue:
  """Pending items of one writer, in order, and its turn if there is one."""

  def __init__(self, turn: int | None):
    self.turn = turn
    self.num_pending = 0
    self.is_closed = False
    self.blocks: collections.deque[Items] = collections.deque()


class WriterQueues:
  """Pending items of all writers, and the order in which they are inserted.

  The order is first come, first served, or round-robin: after the k-th block of
  one writer comes the k-th block of the next one, whatever their speeds. Closed
  queues are skipped.
  """

  def __init__(self, num_turns: int | None):
    """Starts without queues; `num_turns` is None for first come."""
    self._num_turns = num_turns
    self._now = 0
    self._by_turn: dict[int, WriterQueue] = {}
    self._order: collections.deque[WriterQueue] = collections.deque()

  def open(self, turn: int | None) -> WriterQueue:
    """Opens a queue for a writer, at its position in the round-robin order."""
    queue = WriterQueue(turn)
    if self._num_turns is None:
      return queue
    if turn is None or not 0 <= turn < self._num_turns:
      raise ValueError(
        f'turn must be in [0, {self._num_turns}), for this table inserts '
        f'items of its writers in round-robin order; got {turn}.'
      )
    before = self._by_turn.get(turn)
    if before is not None and not before.is_closed:
      raise ValueError(
        f'turn must be unique among open writers, but {turn} is in use.'
      )
    self._by_turn[turn] = queue
    return queue

  def append(self, queue: WriterQueue, items: Items) -> None:
    """Appends items to a queue."""
    queue.blocks.append(items)
    queue.num_pending += len(items.priorities)
    if self._num_turns is None:
      self._order.append(queue)

  def first(self) -> WriterQueue | None:
    """Returns the queue with the next items; None if none can be inserted."""
    if self._num_turns is None:
      return self._order[0] if self._order else None
    for _ in range(self._num_turns):
      queue = self._by_turn.get(self._now)
      if queue is None or (not queue.blocks and not queue.is_closed):
        return None  # Its writer has not written yet.
      if queue.blocks:
        return queue
      self._now = (self._now + 1) % self._num_turns
    return None

  def advance(self, queue: WriterQueue, num_items: int) -> None:
    """Records that the first items of a queue were inserted."""
    queue.num_pending -= num_items
    items = queue.blocks.popleft()
    if num_items < len(items.priorities):
      queue.blocks.appendleft(items.after(num_items))
    elif self._num_turns is None:
      self._order.popleft()
    else:
      self._now = (self._now + 1) % self._num_turns

  def close(self, queue: WriterQueue) -> None:
    """Closes a queue and drops its items."""
    queue.is_closed = True
    queue.blocks.clear()
    queue.num_pending = 0
    self._order = collections.deque(
      other for other in self._order if other is not queue
    )


class Table:
  """Thread-safe replay table with a rate limiter.

  In a single thread, results follow bitwise from the calls and the seed.

  Items are removed in insertion order. So they form a ring, and the number of
  an item, counted from 0, is its key and determines its row.

  There is a column per leaf. Small leaves share one array of the table's full
  size; the system allocates memory only for rows that were written. Large
  leaves, such as images, are objects: several items may share one, which is
  freed with the last of them.
  """

  def __init__(
    self, table: tables.TableSpec, seed: int, num_turns: int | None = None
  ):
    """Creates an empty table.

    Args:
      table: Description of the table.
      seed: Seed of the sampler.
      num_turns: Number of writers whose items are inserted in round-robin
        order, see `WriterQueues`; None for no order.
    """
    self.description = table
    self._max_size = table.max_size
    self._columns = _make_columns(table)
    self._unflatten = nests.Unflattener(table.signature)
    self._priorities = np.empty([table.max_size])
    self._tree = None
    if table.priority_exponent is not None:
      self._tree = sum_tree.SumTree(table.max_size)
    self._random = np.random.Generator(np.random.PCG64(seed))
    self._limiter = rate_limiters.Limiter(table.rate_limit, table.max_size)
    self._size = 0
    self._queues = WriterQueues(num_turns)
    # To detect that a single thread inserts and samples.
    self._users = {threading.get_ident()}
    self._older_threads = weakref.WeakSet(threading.enumerate())
    self._has_writer = False
    # Size of the latest request, for the status.
    self._num_asked = 1
    self._lock = threading.Lock()
    self._has_come = threading.Condition(self._lock)
    self._has_taken = threading.Condition(self._lock)

  def status(self) -> tables.TableInfo:
    with self._lock:
      return self._status()

  # For writers.

  def open_queue(self, turn: int | None) -> WriterQueue:
    """Opens a queue for a writer; see `WriterQueues`."""
    with self._lock:
      self._note_user()
      self._has_writer = True
      return self._queues.open(turn)

  def close_queue(self, queue: WriterQueue) -> None:
    """Closes a queue and drops its items."""
    with self._lock:
      self._queues.close(queue)
      self._has_taken.notify_all()
      self._take_in()

  def put(self, queue: WriterQueue, items: Items) -> int:
    """Inserts items or queues them; returns the length of the queue."""
    with self._lock:
      self._note_user()
      self._queues.append(queue, items)
      self._take_in()
      if queue.num_pending:  # The caller may change its arrays.
        left = queue.blocks.pop()
        leaves = [np.array(leaf) for leaf in left.leaves]
        queue.blocks.append(left._replace(leaves=leaves))
      return queue.num_pending

  def wait_for_queue(
    self, queue: WriterQueue, num_pending: int, seconds: float
  ) -> bool:
    """Waits up to `seconds` until a queue is short; returns whether it is.

    Raises a DeadlockError if no other thread can sample.
    """
    with self._lock:
      self._note_user()
      if queue.num_pending <= num_pending:
        return True
      if seconds and self._is_alone():
        raise waits.deadlock(
          self.description,
          self._status(),
          f'sample, and {queue.num_pending - num_pending} more items do not '
          'fit',
          'Do the updates that are due before acting: `replay.ReplayRatio` '
          'computes their number.',
        )
      return self._has_taken.wait_for(
        lambda: queue.num_pending <= num_pending, seconds
      )

  # For the learner.

  def sample(
    self,
    num_samples: int,
    seconds: float,
    into: Sequence[np.ndarray] | None = None,
  ) -> types.Sample | None:
    """Samples items at once, as soon as the rate limiter allows.

    Args:
      num_samples: Number of items.
      seconds: Time limit.
      into: Arrays for the leaves of the sample; None for new ones.

    Returns:
      Arrays that never change, unless they are yours; None after `seconds`.

    Raises:
      DeadlockError: If a wait is needed, and no other thread can insert.
    """
    with self._lock:
      self._note_user()
      self._num_asked = num_samples
      if not self._may_sample(num_samples):
        if seconds and self._is_alone():
          raise waits.deadlock(
            self.description,
            self._status(),
            f'insert, and too few items are left to sample {num_samples}',
            'Continue acting before the next update: `replay.ReplayRatio` '
            'computes when one is due.',
          )
        if not self._has_come.wait_for(
          lambda: self._may_sample(num_samples), seconds
        ):
          return None
      numbers, probabilities = self._draw(num_samples)
      places = numbers % self._max_size
      # They do not change when rows are overwritten.
      taken = [column.take(places, axis=0) for column in self._columns]
      sizes = np.full([num_samples], self._size)
      if self.description.is_queue:
        sizes -= np.arange(num_samples)
        for i in self.description.packing.whole:
          self._columns[i][places] = None
        self._size -= num_samples
      self._limiter.samples += num_samples
      self._take_in()
    layout = self.description.packing
    for i in layout.whole:
      stacked = into[i] if into else _make_stack(taken[i], layout, i)
      _fill(stacked, taken[i], i in layout.stacks)
      taken[i] = stacked
    leaves = [*taken, numbers.astype(np.uint64), probabilities, sizes]
    if into:
      for array, leaf in zip(into, leaves):
        if array is not leaf:
          array[...] = leaf
      leaves = into
    return types.Sample(self._unflatten(leaves[:-3]), *leaves[-3:])

  def update_priorities(self, keys: np.ndarray, priorities: np.ndarray) -> None:
    """Sets priorities `[B]` by key, uint64 `[B]`; removed items are ignored.

    The last one of repeated keys counts.
    """
    with self._lock:
      numbers = keys.astype(np.int64)
      inserts = self._limiter.inserts
      is_there = (numbers >= inserts - self._size) & (numbers < inserts)
      if not is_there.all():
        numbers, priorities = numbers[is_there], priorities[is_there]
      places = numbers % self._max_size
      self._priorities[places] = priorities
      if self._tree is not None:
        self._tree.set(places, self._weigh(self._priorities[places]))

  # For checkpoints.

  def copy(self, has_leaves: bool = True) -> Contents:
    """Returns the table's contents, without pending items."""
    with self._lock:
      limiter = self._limiter
      numbers = np.arange(limiter.inserts - self._size, limiter.inserts)
      places = numbers % self._max_size
      columns = self._columns if has_leaves else []
      leaves = [column.take(places, axis=0) for column in columns]
      return Contents(
        Items(leaves, self._priorities[places]),
        inserts=limiter.inserts,
        samples=limiter.samples,
        random=self._random.bit_generator.state,
      )

  def restore(self, contents: Contents) -> None:
    """Restores copied contents.

    The table must be empty, or hold the same items if leaves were not copied.
    """
    with self._lock:
      limiter, items = self._limiter, contents.items
      size = len(items.priorities)
      if items.leaves:
        limiter.inserts = contents.inserts - size
        self._write(items, size)
      limiter.samples = contents.samples
      self._random.bit_generator.state = dict(contents.random)
      self._take_in()
    if not items.leaves:
      keys = np.arange(contents.inserts - size, contents.inserts)
      self.update_priorities(keys, items.priorities)

  # The following methods require the lock.

  def _note_user(self) -> None:
    self._users.add(threading.get_ident())

  def _is_alone(self) -> bool:
    """Returns whether only this thread, and no newer one, uses the table."""
    return (
      self._has_writer
      and self._users == {threading.get_ident()}
      and all(one in self._older_threads for one in threading.enumerate())
    )

  def _status(self) -> tables.TableInfo:
    limiter = self._limiter
    waiting = ''
    if self._size < self.description.min_size:
      waiting = 'sample'
    elif not limiter.num_insertable(1):
      waiting = 'insert'
    elif not self._may_sample(self._num_asked):
      waiting = 'sample'
    return tables.TableInfo(
      size=self._size,
      max_size=self._max_size,
      inserts=limiter.inserts,
      samples=limiter.samples,
      waiting=waiting,
    )

  def _take_in(self) -> None:
    """Inserts pending items, as far as the rate limiter allows."""
    num_taken = 0
    while (queue := self._queues.first()) is not None:
      items = queue.blocks[0]
      count = self._limiter.num_insertable(len(items.priorities))
      if not count:
        break
      self._write(items, count)
      self._queues.advance(queue, count)
      num_taken += count
    if num_taken:
      self._has_come.notify_all()
      self._has_taken.notify_all()

  def _write(self, items: Items, count: int) -> None:
    """Writes the first items over the oldest ones."""
    begin = 0
    while begin < count:
      place = self._limiter.inserts % self._max_size
      end = min(count, begin + self._max_size - place)
      place_end = place + end - begin
      for column, leaf in zip(self._columns, items.leaves):
        column[place:place_end] = leaf[begin:end]
      priorities = items.priorities[begin:end]
      self._priorities[place:place_end] = priorities
      if self._tree is not None:
        self._tree.set(np.arange(place, place_end), self._weigh(priorities))
      self._limiter.inserts += end - begin
      begin = end
    self._size = min(self._size + count, self._max_size)

  def _weigh(self, priorities: np.ndarray) -> np.ndarray:
    return priorities**self.description.priority_exponent

  def _may_sample(self, num_samples: int) -> bool:
    is_queue = self.description.is_queue
    size = self._size - (num_samples - 1 if is_queue else 0)
    return self._limiter.may_sample(num_samples, size)

  def _draw(self, num_samples: int) -> tuple[np.ndarray, np.ndarray]:
    """Samples items; returns their numbers and probabilities."""
    inserts, size = self._limiter.inserts, self._size
    oldest = inserts - size
    if self._tree is not None and self._tree.total > 0:
      uniforms = self._random.random(num_samples)
      places, probabilities = self._tree.draw(uniforms)
      return oldest + (places - oldest) % self._max_size, probabilities
    if self.description.is_queue:
      return oldest + np.arange(num_samples), np.ones([num_samples])
    numbers = self._random.integers(oldest, inserts, num_samples)
    return numbers, np.full([num_samples], 1 / size)


def _make_columns(table: tables.TableSpec) -> list[np.ndarray]:
  """Makes an array for each leaf of all items, of objects for large leaves."""
  layout, columns = table.packing, []
  for i, (shape, dtype) in enumerate(zip(layout.shapes, layout.dtypes)):
    if None in shape or dtype.hasobject:
      raise ValueError(
        f"signature of table '{table.name}' must have numeric leaves of "
        f'known shape, got {dtype} of shape {shape}.'
      )
    if i in layout.whole:
      shape, dtype = (), np.dtype(object)
    try:
      columns.append(np.empty([table.max_size, *shape], dtype))
    except (MemoryError, ValueError) as error:
      raise SettingError(
        'max_size', f"of table '{table.name}' is too large: {text_of(error)}."
      ) from error
  return columns


def _fill(rows: np.ndarray, stored: np.ndarray, are_frame_stacks: bool) -> None:
  """Copies stored arrays into the rows of an array."""
  if are_frame_stacks:
    for row, stack in zip(rows, stored):
      stored_arrays.read(stack, row)
  else:
    for row, array in zip(rows, stored):
      row[...] = array


def _make_stack(
  arrays: np.ndarray, layout: packing.Packing, index: int
) -> np.ndarray:
  """Makes an array for some of a leaf, with the alignment for TensorFlow."""
  shape, dtype = layout.shapes[index], layout.dtypes[index]
  num_bytes = len(arrays) * dtype.itemsize * math.prod(shape)
  room = np.empty([num_bytes + _ALIGNMENT], np.uint8)
  begin = -room.ctypes.data % _ALIGNMENT
  stacked = room[begin : begin + num_bytes].view(dtype)
  return stacked.reshape([len(arrays), *shape])


class LocalPriorities(batches.Priorities):
  """Updates priorities of a table in this process, at once."""

  def __init__(self, table: Table, floor: float):
    super().__init__(floor)
    self._table = table

  def update(self, keys: np.ndarray, priorities: np.ndarray) -> None:
    self._table.update_priorities(keys, self._raise_to_floor(priorities))

  def flush(self) -> None:
    pass

  def close(self) -> None:
    pass


class LocalBatches(batches.Batches):
  """Iterator over batches of a table in this process.

  A batch is sampled on request, in the calling thread: it is as fresh as
  possible, and reproducible in a single thread. Leaves are arrays.

  If a single thread inserts and samples, requesting a batch that is not due
  raises a `DeadlockError` at once; see `replay.ReplayRatio`.
  """

  def __init__(
    self,
    table: Table,
    batch_size: int,
    place: waits.WaitPolicy | None = None,
  ):
    self._table = table
    self._batch_size = batch_size
    self._place = place or waits.WaitPolicy()

  @property
  def element_spec(self) -> types.Sample:
    signature = self._table.description.signature
    return batches.sample_spec(signature, self._batch_size)

  def __next__(self) -> types.Sample:
    return self._wait(
      lambda seconds: self._table.sample(self._batch_size, seconds),
      self._table.description,
      self._place,
      self._table.status,
    )

  def close(self) -> None:
    self._is_closed = True
