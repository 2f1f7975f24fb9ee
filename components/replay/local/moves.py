"""Conversion of snapshots between local replay tables and replay servers.

Both restore their tables from files when they start, so the files of one are
converted to files of the other. A temporary server without other clients takes
the items, or returns them in order. Its table's limits and counts are edited in
the file of its tables.
"""

import contextlib
import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import reverb
import tensorflow as tf
from reverb.cc import schema_pb2
from reverb.cc.checkpointing import checkpoint_pb2

from repertory.components.replay import (
  checkpoints,
  connection,
  reverb_tables,
  reverb_writers,
  writers,
)
from repertory.components.replay import tables as tables_lib
from repertory.components.replay.local import server_items, snapshots
from repertory.components.replay.local import table as table_lib
from repertory.components.runtime import network_interfaces, signals

_TABLES_FILE, _ITEMS_FILE = 'tables.tfrecord', 'items.tfrecord'
_COMPRESSED = 'ZLIB'  # Compression of all files of a server.
_TEMPORARY = '.moving'
# Maximum number of pending items; Reverb warns about more.
_MAX_PENDING_ITEMS = 32
_BLOCK = 16  # Items per write.
# Interval of progress reports; shorter conversions report nothing.
_REPORT_SECONDS = 5.0


def to_server(
  directory: str,
  table: tables_lib.TableSpec,
  report: Callable[[str], None] = lambda message: None,
  stop: signals.StopSignal | None = None,
) -> None:
  """Converts a local snapshot to a server checkpoint, if there is one.

  Arrays that items share remain shared.

  Args:
    directory: Directory of the snapshot, and of the server's checkpoints.
    table: The server's only table.
    report: Function that logs progress messages.
    stop: Signal that ends the conversion.

  Raises:
    CheckpointError: If the snapshot belongs to another table.
    signals.Stopped: If the stop signal was set.
    OSError, tf.errors.OpError, ReplayCheckpointError: If the files cannot be
      written.
  """
  contents = None
  if snapshots.is_there(directory):
    contents = snapshots.read(directory, table)
  if contents is None:
    return
  checkpoints.remove_checkpoints(directory)
  stop = stop or signals.StopSignal()
  progress = _Progress('into a server', len(contents.priorities), report, stop)
  unlimited = reverb_tables.make_table(table, reverb.rate_limiters.MinSize(1))
  with _serving(unlimited, directory) as address:
    place = connection.Connection(address, stop=stop)
    _write(place, table, contents, progress)
    if contents.times_sampled:  # Of the oldest item, which is sampled first.
      oldest = place.client.sample(
        table.name, contents.times_sampled, emit_timesteps=False
      )
      list(oldest)
    folder = checkpoints.write_checkpoint(place)
  with _changed_table(folder) as saved:
    _set_limits(saved, reverb_tables.make_table(table))
    saved.rate_limiter.insert_count = contents.inserts
    saved.rate_limiter.sample_count = contents.samples
    # The server derives the number of remaining samples from it.
    size = len(contents.priorities)
    saved.rate_limiter.delete_count = contents.inserts - size


def to_process(
  directory: str,
  table: tables_lib.TableSpec,
  report: Callable[[str], None] = lambda message: None,
  stop: signals.StopSignal | None = None,
) -> None:
  """Converts a server checkpoint to a local snapshot, if there is one.

  Equal arrays are merged.

  Args:
    directory: Directory of the server's checkpoint, and of the snapshot.
    table: The server's only table.
    report: Function that logs progress messages.
    stop: Signal that ends the conversion.

  Raises:
    signals.Stopped: If the stop signal was set.
    OSError, tf.errors.OpError: If the files cannot be written.
  """
  folder = _find_written_by_server(directory)
  if folder is None:
    return
  temporary = os.path.join(directory, _TEMPORARY)
  shutil.rmtree(temporary, ignore_errors=True)
  os.mkdir(temporary)
  os.rename(folder, os.path.join(temporary, '0'))
  contents = _read_written_by_server(temporary, table, report, stop)
  checkpoints.remove_checkpoints(directory)
  snapshots.write(directory, table, contents)


class _Progress:
  """Reports the progress of a conversion, and raises on a stop signal."""

  def __init__(
    self,
    direction: str,
    size: int,
    report: Callable[[str], None],
    stop: signals.StopSignal,
  ):
    self._stop = stop
    self._direction = direction
    self._size = size
    self._report = report
    self._reported_at = time.monotonic()

  def update(self, num_items: int) -> None:
    """Records the number of converted items."""
    self._stop.check()
    now = time.monotonic()
    if now - self._reported_at >= _REPORT_SECONDS:
      self._reported_at = now
      self._report(
        f'moving replay {self._direction}: {num_items:,} of {self._size:,} '
        'items'
      )


@contextlib.contextmanager
def _serving(table: reverb.Table, directory: str) -> Iterator[str]:
  """Runs a server that only this machine reaches; yields its address."""
  checkpointer = reverb.checkpointers.DefaultCheckpointer(directory)
  one = reverb.Server(tables=[table], port=None, checkpointer=checkpointer)
  try:
    network_interfaces.restrict(one.port)
    yield f'localhost:{one.port}'
  finally:
    one.stop()


@contextlib.contextmanager
def _changed_table(folder: str) -> Iterator[Any]:
  """Yields the table record of a server's checkpoint, for in-place edits."""
  with _rewritten(os.path.join(folder, _TABLES_FILE)) as (records, file):
    (record,) = records
    saved: Any = checkpoint_pb2.PriorityTableCheckpoint()
    saved.ParseFromString(record)
    yield saved
    file.write(saved.SerializeToString())


def _set_limits(saved: Any, table: reverb.Table) -> None:
  """Copies the rate limits of a table into a checkpoint's table record."""
  limiter = table.info.rate_limiter_info
  for name in (
    'samples_per_insert', 'min_diff', 'max_diff', 'min_size_to_sample',
  ):  # fmt: skip
    setattr(saved.rate_limiter, name, getattr(limiter, name))


def _forget_samples(
  folder: str, table: tables_lib.TableSpec, stop: signals.StopSignal
) -> dict[int, int]:
  """Resets the sample counts of all items in a server's checkpoint.

  Returns:
    Previous sample count by key; empty if the table has no sample limit.
  """
  counts = {}
  item: Any = schema_pb2.PrioritizedItem()
  with _rewritten(os.path.join(folder, _ITEMS_FILE)) as (records, file):
    for record in records:
      stop.check()
      item.ParseFromString(record)
      if item.times_sampled and table.max_times_sampled > 1:
        counts[item.key] = item.times_sampled
      item.times_sampled = 0
      file.write(item.SerializeToString())
  return counts


@contextlib.contextmanager
def _rewritten(path: str) -> Iterator[tuple[Iterable, tf.io.TFRecordWriter]]:
  """Yields the records of a file, and a writer for their replacements.

  The result is a new file, because the old one may have further hard links.
  """
  records = tf.data.TFRecordDataset(path, _COMPRESSED).as_numpy_iterator()
  temporary = f'{path}.new'
  options = tf.io.TFRecordOptions(_COMPRESSED)
  with tf.io.TFRecordWriter(temporary, options) as file:
    yield records, file
  os.replace(temporary, path)


def _write(
  place: connection.Connection,
  table: tables_lib.TableSpec,
  contents: table_lib.Contents,
  progress: _Progress,
) -> None:
  """Writes items, in order and with their priorities, to a server."""
  priorities = iter(contents.priorities.tolist())
  writer = reverb_writers.ReverbWriter(
    place,
    table,
    priority=lambda: next(priorities),
    max_pending_items=_MAX_PENDING_ITEMS,
  )
  size, packing = len(contents.priorities), table.packing
  num_small = len(packing.packed)
  columns, large = contents.leaves[:num_small], contents.leaves[num_small:]
  writer.open(_longest_use(large))
  references = _keep_large_leaves(writer, table, large)
  try:
    for begin in range(0, size, 1 if large else _BLOCK):
      leaves: list[Any] = [None] * len(packing.shapes)
      for j, column in zip(packing.packed, columns):
        leaves[j] = column[begin : begin + _BLOCK]
      if large:
        leaves = [leaf if leaf is None else leaf[:1] for leaf in leaves]
        writer.put(leaves, [next(references)])
      else:
        writer.put(leaves)
      if writer.is_ahead():
        writer.wait()
      progress.update(begin)
  finally:
    writer.close()


def _keep_large_leaves(
  writer: writers.Writer,
  table: tables_lib.TableSpec,
  large: Sequence[np.ndarray],
) -> Iterator[list]:
  """Stores the large leaves of each item in a writer.

  Yields:
    References to the large leaves of an item.
  """
  kinds = snapshots.by_kind(table)
  kind_of = {k: n for n, columns in enumerate(kinds) for k in columns}
  held: dict[int, Any] = {}  # References by array.
  for arrays in zip(*large):
    for k, array in enumerate(arrays):
      if id(array) not in held:
        kind = kind_of[k]
        step = [array if n == kind else None for n in range(len(kinds))]
        held[id(array)] = writer.keep(step)[kind]
    yield [held[id(array)] for array in arrays]


def _longest_use(large: Sequence[np.ndarray]) -> int:
  """Returns the maximum number of writer steps that an array stays in use.

  Args:
    large: Large leaves of all items, as objects `[N]` each.
  """
  began: dict[int, int] = {}
  longest, step = 1, 0
  for item in zip(*large):
    for array in item:
      if id(array) not in began:
        began[id(array)] = step
        step += 1
    step += 1  # Writing the item is a step, too.
    longest = max(longest, *(step - began[id(array)] for array in item))
  return longest


def _find_written_by_server(directory: str) -> str | None:
  """Returns the newest folder in a directory if a server wrote it."""
  names = sorted(os.listdir(directory)) if os.path.isdir(directory) else []
  if not names:
    return None
  folder = os.path.join(directory, names[-1])
  is_there = os.path.exists(os.path.join(folder, _TABLES_FILE))
  return folder if is_there else None


def _read_written_by_server(
  directory: str,
  table: tables_lib.TableSpec,
  report: Callable[[str], None],
  stop: signals.StopSignal | None,
) -> table_lib.Contents:
  """Reads the items of a server's table in insertion order.

  Args:
    directory: Directory with only this checkpoint; its table becomes a queue.
    table: See `to_process`.
    report: See `to_process`.
    stop: See `to_process`.
  """
  in_order = reverb.Table(
    table.name,
    sampler=reverb.selectors.Fifo(),
    remover=reverb.selectors.Fifo(),
    max_size=table.max_size,
    max_times_sampled=1,
    rate_limiter=reverb.rate_limiters.MinSize(1),
    signature=table.packing.stored_signature,
  )
  folder = os.path.join(directory, '0')
  with _changed_table(folder) as saved:
    inserts = saved.rate_limiter.insert_count
    samples = saved.rate_limiter.sample_count
    _set_limits(saved, in_order)
    saved.sampler.fifo = True
    saved.max_times_sampled = 1
  stop = stop or signals.StopSignal()
  # The queue would never remove items that were sampled before.
  times_sampled = _forget_samples(folder, table, stop)
  items = server_items.ServerItems(table)
  with _serving(in_order, directory) as address:
    client = reverb.Client(address)
    size = client.server_info()[table.name].current_size
    progress = _Progress('out of a server', size, report, stop)
    # All items are there, so this never blocks; Reverb rejects a size of 0.
    found = client.sample(table.name, size, emit_timesteps=False)
    for item in found if size else ():
      items.add(item)
      progress.update(len(items))
  return items.contents(inserts, samples, times_sampled)
