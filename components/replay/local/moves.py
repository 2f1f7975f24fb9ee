"""Moves what a table holds from a process to a replay server, and back.

A server is known by the files that it reads and writes. One that nobody else
uses writes the items, or gives them in their order; what its table is, and how
much it has inserted and sampled, is told to it in the file of its tables.
"""

import contextlib
import hashlib
import os
import shutil
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import reverb
import tensorflow as tf
from reverb.cc.checkpointing import checkpoint_pb2

from repertory.components import checkpointing, loopback
from repertory.components.replay import (
  checkpoints,
  connection,
  reverb_tables,
  reverb_writers,
  writers,
)
from repertory.components.replay import tables as tables_lib
from repertory.components.replay.local import snapshots
from repertory.components.replay.local import table as table_lib

_TABLES_FILE = 'tables.tfrecord'
_COMPRESSED = 'ZLIB'  # All files of a server are.
_TEMPORARY = '.moving'
# Items that may be on their way to a server; of more it warns.
_MAX_PENDING_ITEMS = 32
_BLOCK = 16  # Items that are handed over at once.


def to_server(directory: str, tables: Sequence[tables_lib.Table]) -> None:
  """Makes a snapshot of this process what a server reads; if there is one.

  Arrays that several items share are shared there, too.

  Args:
    directory: Where a snapshot was placed, and from where the server will read.
    tables: Those of the server.

  Raises:
    CheckpointError: If the snapshot is of another table.
  """
  if not snapshots.is_there(directory):
    return
  (table,) = tables
  contents = snapshots.read(directory, table)
  if contents is None:
    return
  checkpoints.remove_checkpoints(directory)
  unlimited = reverb_tables.make_table(table, reverb.rate_limiters.MinSize(1))
  with _serving([unlimited], directory) as address:
    place = connection.Connection(address)
    _write(place, table, contents)
    folder = checkpoints.write_checkpoint(place)
  limiter = reverb_tables.make_table(table).info.rate_limiter_info
  with _changed_table(folder) as saved:
    for name in (
      'samples_per_insert', 'min_diff', 'max_diff', 'min_size_to_sample',
    ):  # fmt: skip
      setattr(saved.rate_limiter, name, getattr(limiter, name))
    saved.rate_limiter.insert_count = contents.inserts
    saved.rate_limiter.sample_count = contents.samples
    # By this the server knows how many are left to be sampled.
    size = len(contents.priorities)
    saved.rate_limiter.delete_count = contents.inserts - size


def read(directory: str, table: tables_lib.Table) -> table_lib.Contents | None:
  """Reads the snapshot, or what a server wrote; None if there is neither.

  Args:
    directory: Where it was placed.
    table: What is to go on from it.

  Raises:
    CheckpointError: If what is there cannot be read, or is of another table.
  """
  folder = _find_written_by_server(directory)
  if folder is None:
    return snapshots.read(directory, table)
  copied = os.path.join(directory, _TEMPORARY, '0')
  try:
    checkpointing.link_tree(folder, copied)
    return _read_written_by_server(copied, table)
  finally:
    shutil.rmtree(os.path.dirname(copied), ignore_errors=True)


@contextlib.contextmanager
def _serving(tables: Sequence[reverb.Table], directory: str) -> Iterator[str]:
  """Runs a server for this machine alone; yields its address."""
  checkpointer = reverb.checkpointers.DefaultCheckpointer(directory)
  one = reverb.Server(tables=tables, port=None, checkpointer=checkpointer)
  try:
    loopback.restrict(one.port)
    yield f'localhost:{one.port}'
  finally:
    one.stop()


@contextlib.contextmanager
def _changed_table(folder: str) -> Iterator[Any]:
  """Yields what a server's checkpoint says of its table, to be changed.

  The file becomes another one: it may be linked to from elsewhere.
  """
  path = os.path.join(folder, _TABLES_FILE)
  (record,) = tf.data.TFRecordDataset(path, _COMPRESSED).as_numpy_iterator()
  saved: Any = checkpoint_pb2.PriorityTableCheckpoint()
  saved.ParseFromString(record)
  yield saved
  temporary = f'{path}.new'
  options = tf.io.TFRecordOptions(_COMPRESSED)
  with tf.io.TFRecordWriter(temporary, options) as file:
    file.write(saved.SerializeToString())
  os.replace(temporary, path)


def _write(
  place: connection.Connection,
  table: tables_lib.Table,
  contents: table_lib.Contents,
) -> None:
  """Writes items, in their order and with their priorities, to a server."""
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
  references = _keep_each(writer, table, large)
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
  finally:
    writer.close()


def _keep_each(
  writer: writers.Writer, table: tables_lib.Table, large: Sequence[np.ndarray]
) -> Iterator[list]:
  """Lets a writer keep the large leaves of one item after the other.

  Yields:
    The references to those of an item.
  """
  kinds = snapshots.by_kind(table)
  kind_of = {k: n for n, columns in enumerate(kinds) for k in columns}
  held: dict[int, Any] = {}  # What the writer has of an array.
  for arrays in zip(*large):
    for k, array in enumerate(arrays):
      if id(array) not in held:
        kind = kind_of[k]
        step = [array if n == kind else None for n in range(len(kinds))]
        held[id(array)] = writer.keep(step)[kind]
    yield [held[id(array)] for array in arrays]


def _longest_use(large: Sequence[np.ndarray]) -> int:
  """Returns over how many steps of a writer items refer to the same array.

  Args:
    large: The large leaves of all items, as objects `[N]` each.
  """
  began: dict[int, int] = {}
  longest, step = 1, 0
  for item in zip(*large):
    for array in item:
      if id(array) not in began:
        began[id(array)] = step
        step += 1
    step += 1  # The item itself.
    longest = max(longest, *(step - began[id(array)] for array in item))
  return longest


def _find_written_by_server(directory: str) -> str | None:
  """Returns the newest folder there if a server wrote it."""
  names = sorted(os.listdir(directory)) if os.path.isdir(directory) else []
  if not names:
    return None
  folder = os.path.join(directory, names[-1])
  is_there = os.path.exists(os.path.join(folder, _TABLES_FILE))
  return folder if is_there else None


def _read_written_by_server(
  folder: str, table: tables_lib.Table
) -> table_lib.Contents:
  """Reads the items of a server's table in the order in which they came.

  Args:
    folder: The checkpoint, alone in its directory; its table is made a queue.
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
  limiter = in_order.info.rate_limiter_info
  with _changed_table(folder) as saved:
    inserts = saved.rate_limiter.insert_count
    samples = saved.rate_limiter.sample_count
    for name in ('min_diff', 'max_diff', 'min_size_to_sample'):
      setattr(saved.rate_limiter, name, getattr(limiter, name))
    saved.sampler.fifo = True
    saved.max_times_sampled = 1
  with _serving([in_order], os.path.dirname(folder)) as address:
    client = reverb.Client(address)
    size = client.server_info()[table.name].current_size
    items: list[Any] = []
    if size:
      items += client.sample(table.name, size, emit_timesteps=False)
  packing = table.packing
  leaves = []
  if packing.packed:
    records = np.array([item.data[0] for item in items], np.uint8)
    leaves += packing.unpack_records(records)
  columns = [item.data[bool(packing.packed) :] for item in items]
  leaves += _share(columns, len(packing.whole))
  is_limited = table.max_times_sampled > 1 and items
  return table_lib.Contents(
    leaves=leaves,
    priorities=np.array([item.info.priority for item in items], np.float64),
    inserts=inserts,
    samples=samples,
    times_sampled=items[0].info.times_sampled - 1 if is_limited else 0,
    random=None,
  )


def _share(
  rows: Sequence[Sequence[np.ndarray]], num_columns: int
) -> list[np.ndarray]:
  """Returns columns of objects in which equal arrays are one."""
  arrays: dict[tuple, np.ndarray] = {}
  columns = [np.empty([len(rows)], object) for _ in range(num_columns)]
  for i, row in enumerate(rows):
    for column, array in zip(columns, row):
      array = np.array(array)
      digest = hashlib.blake2b(array.tobytes(), digest_size=16).digest()
      key = array.shape, array.dtype, digest
      column[i] = arrays.setdefault(key, array)
  return columns
