"""Wire format between a replay server and its clients.

A client opens a connection per purpose; the handshake names it, the table, and
its signature. Then follow frames, see `network.frames`:

    WRITE       ARRAYS and ITEMS from the client; INSERTED with the number of
                items that the table has taken from this connection
    SAMPLE      DEMAND for each batch; BATCH with a `types.Sample`
    PRIORITIES  PRIORITIES; UPDATED when the table has them
    STATUS      ASK; ANSWER with the status of all tables
    SNAPSHOT    ASK; ANSWER when the contents are fixed, and when the files are
                written

Large leaves are sent once, as ARRAYS, and numbered in the order of sending.
Items refer to these numbers, as long as the client keeps them alive.
"""

import itertools
import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tree

from repertory.components.network import frames
from repertory.components.replay import packing, tables
from repertory.components.replay.local import stored_arrays
from repertory.components.replay.local import table as table_lib

PROTOCOL = 1

# Purposes of connections.
WRITE, SAMPLE, PRIORITIES_OF = 'write', 'sample', 'priorities'
STATUS, SNAPSHOT = 'status', 'snapshot'

# Kinds of frames, besides those of a handshake.
ARRAYS, ITEMS, INSERTED = 10, 11, 12
DEMAND, BATCH = 13, 14
PRIORITIES, UPDATED = 15, 16
ASK, ANSWER = 17, 18

# Larger payloads are refused, unless a single item is larger.
MAX_BYTES = 1 << 28

# Of ARRAYS: index of the leaf, and number of arrays; then follow their sizes.
_ARRAYS_HEAD = struct.Struct('<II')
# Of ITEMS: their number, and the oldest array that is still needed. Then follow
# priorities, packed leaves, and numbers of arrays for each other leaf.
_ITEMS_HEAD = struct.Struct('<QQ')
COUNT = struct.Struct('<Q')


def hello(
  purpose: str, token: str, table: tables.TableSpec | None, **more: Any
) -> dict[str, Any]:
  """Returns the message of a handshake, about a table or all tables."""
  message = {'protocol': PROTOCOL, 'purpose': purpose, 'token': token, **more}
  if table is not None:
    message |= {'table': table.name, 'signature': describe(table)}
  return message


def describe(table: tables.TableSpec) -> list:
  """Returns shapes and dtypes of a table's items as plain values."""
  layout = table.packing
  return frames.describe(list(zip(layout.shapes, layout.dtypes)))


def batch_leaves(table: tables.TableSpec) -> list[frames.LeafSpec]:
  """Returns the leaf specs of a `types.Sample`, in the order of `tree`."""
  layout = table.packing
  return [
    *zip(layout.shapes, layout.dtypes),
    ((), np.dtype(np.uint64)),
    ((), np.dtype(np.float64)),
    ((), np.dtype(np.int64)),
  ]


def max_payload(table: tables.TableSpec) -> int:
  """Returns the size of the largest frame that a writer may send."""
  item = sum(map(packing.num_bytes, tree.flatten(table.signature)))
  return max(MAX_BYTES, 2 * item)


def pack_arrays(
  index: int, arrays: Sequence[np.ndarray | stored_arrays.CompressedArray]
) -> list[memoryview]:
  """Returns the parts of a frame of arrays of one leaf."""
  parts = [stored_arrays.stored_bytes(array) for array in arrays]
  sizes = np.array([len(part) for part in parts], np.uint32)
  head = _ARRAYS_HEAD.pack(index, len(arrays)) + sizes.tobytes()
  size = len(head) + int(sizes.sum(dtype=np.int64))
  return [memoryview(frames.header(ARRAYS, size) + head), *parts]


def unpack_arrays(
  payload: memoryview, table: tables.TableSpec
) -> list[np.ndarray | stored_arrays.CompressedArray]:
  """Returns the arrays of a frame, which share its memory.

  Raises a ProtocolError if they do not fit the table.
  """
  layout, start = table.packing, _ARRAYS_HEAD.size
  if len(payload) < start:
    raise frames.ProtocolError(f'Arrays must have {start} bytes or more.')
  index, count = _ARRAYS_HEAD.unpack_from(payload)
  end = start + 4 * count
  if index not in layout.whole or len(payload) < end:
    raise frames.ProtocolError(
      f'Arrays must be of the leaves {layout.whole}, got {count} of {index}.'
    )
  sizes = np.frombuffer(payload[start:end], np.uint32).tolist()
  if len(payload) != end + sum(sizes):
    raise frames.ProtocolError(
      f'{count} arrays must have {sum(sizes)} bytes, got {len(payload) - end}.'
    )
  arrays = []
  for size in sizes:
    data, end = payload[end : end + size], end + size
    shape, dtype = layout.shapes[index], layout.dtypes[index]
    try:
      arrays.append(stored_arrays.from_stored(data, shape, dtype))
    except ValueError as error:
      raise frames.ProtocolError(str(error)) from error
  return arrays


def pack_items(
  oldest: int,
  priorities: np.ndarray,
  records: np.ndarray,
  numbers: np.ndarray,
) -> bytes:
  """Returns a frame of items.

  Args:
    oldest: Number of the oldest array that is still needed after them.
    priorities: float64 `[K]`.
    records: Packed leaves, uint8 `[K, bytes]`.
    numbers: Numbers of arrays, uint64 `[leaves, K]`.
  """
  parts = [array.tobytes() for array in (priorities, records, numbers)]
  payload = b''.join((_ITEMS_HEAD.pack(len(priorities), oldest), *parts))
  return frames.header(ITEMS, len(payload)) + payload


def unpack_items(
  payload: memoryview, arrays: Mapping[int, Any], table: tables.TableSpec
) -> tuple[int, table_lib.Items]:
  """Returns `oldest` and the items of a frame, given arrays by number.

  The items share the frame's memory. Raises a ProtocolError if they do not fit
  the table, a priority is bad, or an array that they refer to is not there.
  """
  layout, start = table.packing, _ITEMS_HEAD.size
  if len(payload) < start:
    raise frames.ProtocolError(f'Items must have {start} bytes or more.')
  count, oldest = _ITEMS_HEAD.unpack_from(payload)
  sizes = [8 * count, layout.record_bytes * count]
  sizes.append(8 * count * len(layout.whole))
  if not count or len(payload) != start + sum(sizes):
    raise frames.ProtocolError(
      f"{count} items of table '{table.name}' must have {sum(sizes)} bytes, "
      f'got {len(payload) - start}.'
    )
  ends = (start + np.cumsum([0, *sizes])).tolist()
  priorities, records, numbers = (
    np.frombuffer(payload[a:b], dtype)
    for (a, b), dtype in zip(
      itertools.pairwise(ends), (np.float64, np.uint8, np.uint64)
    )
  )
  check_priorities(priorities)
  leaves: list[Any] = [None] * len(layout.shapes)
  for i, leaf in layout.open(records.reshape(count, -1)).items():
    leaves[i] = leaf
  for i, row in zip(layout.whole, numbers.reshape(-1, count)):
    leaves[i] = np.empty([count], object)
    for k, number in enumerate(row.tolist()):
      if number not in arrays:
        raise frames.ProtocolError(
          f'Items must refer to arrays that are alive, got number {number}.'
        )
      leaves[i][k] = arrays[number]
  return oldest, table_lib.Items(leaves, priorities)


def check_priorities(priorities: np.ndarray) -> None:
  """Raises a ProtocolError if a priority is not finite, or negative."""
  if not (np.isfinite(priorities) & (priorities >= 0)).all():
    raise frames.ProtocolError(
      f'Priorities must be finite and not negative, got {priorities}.'
    )
