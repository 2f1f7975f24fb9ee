"""Conformance tests of replay writers."""

import abc
import contextlib
import itertools
import unittest
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from repertory.components import replay, types
from repertory.components.runtime import signals
from repertory.components.testing import calls

# The leaves of an item, in this order: two large enough to be shared, and a
# small one.
_SIGNATURE = {
  'image': tf.TensorSpec([2000], tf.uint8),
  'mask': tf.TensorSpec([1500], tf.uint8),
  'number': tf.TensorSpec([], tf.int64),
}

# A call still running after this time counts as waiting.
_MOMENT_SECONDS = 0.3


class ServedTable(abc.ABC):
  """Interface of a table to write to, for the tests.

  It returns its items once, in the order of insertion.
  """

  @abc.abstractmethod
  def make_writer(
    self, timeout_seconds: float, stop: signals.StopSignal, **settings: Any
  ) -> replay.Writer:
    """Creates a writer to the table.

    Args:
      timeout_seconds: Time limit of the writer's waits.
      stop: Ends any wait of the writer.
      **settings: See `replay.Writer`.
    """

  @abc.abstractmethod
  def count(self) -> int:
    """Returns the number of items inserted so far."""

  @abc.abstractmethod
  def take(self, num_items: int) -> Sequence[tuple[types.Nest, float]]:
    """Samples items that are in the table.

    Returns:
      Each item, in the structure of the signature, and its priority.
    """


class WriterConformance:
  """The contract of `replay.Writer`.

  Attributes:
    is_held_back: Whether a full table blocks it, as required for training.
    deadline_seconds: Time after which a call counts as hanging.
  """

  is_held_back = True
  deadline_seconds = 60.0

  def serve(
    self, table: replay.TableSpec
  ) -> contextlib.AbstractContextManager[ServedTable]:
    """Returns a context that provides a queue table."""
    raise NotImplementedError

  @contextlib.contextmanager
  def open(
    self, max_size: int = 1000, bundle_size: int = 1, **settings
  ) -> Iterator[tuple[ServedTable, replay.Writer]]:
    """Yields a table and an opened writer to it."""
    with calls.no_threads_left(self.deadline_seconds):
      table = replay.queue(_SIGNATURE, max_size).bundled(bundle_size)
      with (
        self.serve(table) as served,
        self.closing(served, **settings) as writer,
      ):
        yield served, writer

  @contextlib.contextmanager
  def closing(
    self, served: ServedTable, num_alive: int = 1, **settings
  ) -> Iterator[replay.Writer]:
    """Yields an opened writer, and closes it even if the table is full."""
    stop = signals.StopSignal()
    settings = {'timeout_seconds': self.deadline_seconds, **settings}
    writer = served.make_writer(stop=stop, **settings)
    writer.open(num_alive)
    try:
      yield writer
    finally:
      stop.set()
      self.call(writer.close)

  def call(self, function: Callable[..., Any], *args) -> Any:
    """Calls a function that may block, with the deadline."""
    return calls.Call(function, *args).result(self.deadline_seconds)

  def write(self, writer: replay.Writer, *numbers: int) -> None:
    """Puts items, which must not block, and then waits as an adder does."""
    self.call(writer.put, _leaves(numbers))
    if writer.is_ahead():
      self.call(writer.wait)

  def test_items_come_in_order_each_with_a_priority(self):
    priorities = itertools.count(1)
    with self.open(priority=lambda: float(next(priorities))) as (table, writer):
      self.write(writer, 5, 3)
      self.write(writer, 4)
      assert writer.num_items == 3, (
        f'num_items must be 3, got {writer.num_items}.'
      )
      assert table.count() == 3, (
        'Without pending items, the table must have all 3 items after a wait, '
        f'got {table.count()}.'
      )
      taken = table.take(3)
    _check(taken, [5, 3, 4])
    found = [priority for _, priority in taken]
    assert found == [1, 2, 3], f'Priorities must be 1, 2 and 3; got {found}.'

  def test_what_is_put_may_be_changed_afterwards(self):
    with self.open(num_alive=9, max_pending_items=9) as (table, writer):
      leaves = _leaves([1])
      self.call(writer.put, leaves)
      for leaf in leaves:
        leaf[:] = 99
      numbers = [1]
      if writer.shared:
        leaves = _leaves([2])
        references = writer.keep([leaves[i][0] for i in writer.shared])
        for i in writer.shared:
          leaves[i][:] = 99
        self.call(writer.put, leaves, [references])
        numbers.append(2)
      self.call(writer.flush)
      taken = table.take(len(numbers))
    _check(taken, numbers)

  def test_knows_its_table_and_version(self):
    with self.open(version=lambda: 7) as (_, writer):
      assert writer.version() == 7
      assert writer.table.signature == _SIGNATURE
      assert set(writer.shared) <= {0, 1, 2}

  def test_other_leaves_are_refused(self):
    with self.open() as (table, writer):
      *images, _ = _leaves([1])
      self._check_refusal(writer, [*images, np.array([1], np.int32)])
      self._check_refusal(writer, [*images, np.array([[1]], np.int64)])
      assert table.count() == 0

  def test_impossible_priorities_are_refused(self):
    for priority in (float('nan'), float('inf'), -0.5):
      with self.open(priority=lambda p=priority: p) as (table, writer):
        self._check_refusal(writer, _leaves([1]))
        assert table.count() == 0

  def _check_refusal(self, writer, leaves):
    try:
      self.call(writer.put, leaves)
    except ValueError:
      assert writer.num_items == 0, 'Refused items must not be counted.'
    else:
      raise AssertionError('`put` must raise a ValueError.')

  def test_all_comes_before_it_flushes_or_resets_or_closes(self):
    for end in ('flush', 'reset', 'close'):
      with (
        calls.no_threads_left(self.deadline_seconds),
        self.serve(replay.queue(_SIGNATURE, 1000)) as table,
      ):
        writer = table.make_writer(
          self.deadline_seconds, signals.StopSignal(), max_pending_items=1000
        )
        writer.open(1)
        for number in range(100):
          self.write(writer, number)
        self.call(getattr(writer, end))
        found = table.count()
        if end != 'close':
          self.write(writer, 100)
          self.call(writer.close)
        taken = table.take(table.count())
      assert found == 100, (
        f'After `{end}` the table must have all 100 items, got {found}.'
      )
      _check(taken, range(100 if end == 'close' else 101))

  def test_items_refer_to_what_is_kept(self):
    with self.open(num_alive=3, max_pending_items=10) as (table, writer):
      shared = list(writer.shared)
      if not shared:
        raise unittest.SkipTest('Its items hold all their leaves.')
      kept = []
      for number in range(60):
        leaves = _leaves([number])
        kept = [*kept, writer.keep([leaves[i][0] for i in shared])][-3:]
        own = [None if i in shared else leaf for i, leaf in enumerate(leaves)]
        self.call(writer.put, own, [kept[0]])  # The oldest that is alive.
        if writer.is_ahead():
          self.call(writer.wait)
      self.call(writer.flush)
      items = [item for item, _ in table.take(60)]
    for number, item in enumerate(items):
      older = max(0, number - 2)
      for i, (name, leaf) in enumerate(zip(_SIGNATURE, _leaves([number]))):
        expected = _leaves([older])[i] if i in shared else leaf
        np.testing.assert_array_equal(
          np.asarray(item[name]), expected[0], f'{name!r} of item {number}'
        )

  def test_leaves_may_be_left_out(self):
    with self.open(num_alive=3) as (_, writer):
      shared = list(writer.shared)
      if len(shared) < 2:
        raise unittest.SkipTest('Only one leaf can be shared.')
      leaves = _leaves([1])
      first, *others = writer.keep(
        [leaves[shared[0]][0], *[None for _ in shared[1:]]]
      )
      assert first is not None
      assert others == [None for _ in shared[1:]], (
        'Omitted leaves must have no reference.'
      )

  def test_bundles_are_of_items_that_come_together(self):
    with self.open(bundle_size=2, max_pending_items=3) as (table, writer):
      self.call(writer.put, _leaves([0, 1]))
      assert not writer.is_ahead(), '2 items are pending, of at most 3.'
      self.call(writer.put, _leaves([2, 3]))
      assert writer.is_ahead(), '4 items are pending, of at most 3.'
      self.call(writer.wait)
      assert not writer.is_ahead()
      self.write(writer, 4, 5, 6, 7)
      try:
        self.call(writer.put, _leaves([8, 9, 10]))
      except ValueError:
        pass
      else:
        raise AssertionError('`put` must refuse 3 items for bundles of 2.')
      self.call(writer.flush)
      assert (writer.num_items, table.count()) == (8, 8)
      taken = table.take(8)
    _check(taken, range(8))

  def test_full_table_blocks(self):
    self._skip_unheld()
    with self.open(max_size=2) as (table, writer):
      self.write(writer, 0, 1)
      for number in (2, 3):
        self.call(writer.put, _leaves([number]))  # `put` never waits.
        assert writer.is_ahead(), 'is_ahead must be true for a full table.'
      waiting = calls.Call(writer.wait)
      assert waiting.is_waiting(_MOMENT_SECONDS), 'A full table must block.'
      assert table.count() == 2, f'count must be 2, got {table.count()}.'
      taken = [*table.take(2)]
      waiting.result(self.deadline_seconds)
      assert not writer.is_ahead()
      assert table.count() == 4
      taken += table.take(2)
    _check(taken, range(4))

  def test_some_may_be_pending(self):
    self._skip_unheld()
    with self.open(max_size=2, max_pending_items=2) as (table, writer):
      for number in range(4):
        self.write(writer, number)
      self.call(writer.put, _leaves([4]))
      assert writer.is_ahead(), '3 items are pending, of at most 2.'
      waiting = calls.Call(writer.wait)
      assert waiting.is_waiting(_MOMENT_SECONDS)
      taken = [*table.take(2)]
      waiting.result(self.deadline_seconds)  # Half of two may be left.
      calls.wait_until(
        lambda: table.count() == 4, 'two more', self.deadline_seconds
      )
      taken += table.take(2)
      self.call(writer.flush)
      taken += table.take(1)
    _check(taken, range(5))

  def test_wait_ends_after_its_time(self):
    self._skip_unheld()
    with self.open(max_size=2) as (table, patient):
      self.write(patient, 0, 1)
      writer = table.make_writer(0.2, signals.StopSignal())
      writer.open(1)
      self.call(writer.put, _leaves([2]))
      for name in ('wait', 'flush', 'close'):
        try:
          self.call(getattr(writer, name))
        except TimeoutError as error:
          assert '0.2' in str(error), f'The error must name 0.2 s, got {error}'
        else:
          raise AssertionError(f'`{name}` must raise a TimeoutError.')

  def test_continues_after_a_time_out(self):
    self._skip_unheld()
    with self.open(max_size=2) as (table, patient):
      self.write(patient, 0, 1)
      with self.closing(table, timeout_seconds=0.2) as writer:
        self.call(writer.put, _leaves([2]))
        with contextlib.suppress(TimeoutError):
          self.call(writer.wait)
        taken = [*table.take(2)]
        calls.wait_until(
          lambda: table.count() == 3, 'the item', self.deadline_seconds
        )
        taken += table.take(1)

        def is_flushed() -> bool:
          with contextlib.suppress(TimeoutError):
            self.call(writer.flush)
            return True
          return False

        calls.wait_until(is_flushed, 'a flush', self.deadline_seconds)
        assert table.count() == 3, 'No item may be inserted twice.'
    _check(taken, range(3))

  def test_stop_ends_a_wait(self):
    self._skip_unheld()
    stop = signals.StopSignal()
    table = replay.queue(_SIGNATURE, 1)
    with (
      calls.no_threads_left(self.deadline_seconds),
      self.serve(table) as served,
    ):
      writer = served.make_writer(10 * self.deadline_seconds, stop)
      writer.open(1)
      self.write(writer, 0)
      self.call(writer.put, _leaves([1]))
      waiting = calls.Call(writer.wait)
      assert waiting.is_waiting(_MOMENT_SECONDS)
      stop.set()
      try:
        waiting.result(self.deadline_seconds)
      except signals.Stopped:
        pass
      else:
        raise AssertionError('A stopped wait must raise `Stopped`.')
      self.call(writer.close)  # It does not wait for room.

  def _skip_unheld(self):
    if not self.is_held_back:
      raise unittest.SkipTest('Its table is unbounded.')


def _leaves(numbers: Sequence[int]) -> list[np.ndarray]:
  """Returns the leaves of items, each made of its number."""
  column = np.array(numbers, np.int64)
  return [
    np.repeat(column[:, np.newaxis].astype(np.uint8), 2000, 1),
    np.repeat(column[:, np.newaxis].astype(np.uint8) + 1, 1500, 1),
    column,
  ]


def _check(
  taken: Sequence[tuple[types.Nest, float]], numbers: Sequence[int]
) -> None:
  """Compares items with the expected ones."""
  found = [int(item['number']) for item, _ in taken]
  assert found == [*numbers], (
    f'Items must be in the order of insertion, {[*numbers]}, got {found}.'
  )
  for (item, _), number in zip(taken, numbers):
    for name, leaf in zip(_SIGNATURE, _leaves([number])):
      np.testing.assert_array_equal(
        np.asarray(item[name]), leaf[0], f'{name!r} of item {number}'
      )
