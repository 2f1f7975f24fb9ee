"""Connection to a replay server: status, checkpoints and priority updates."""

import collections
import functools
import glob
import os
import zlib
from collections.abc import Mapping, Sequence
from concurrent import futures

import numpy as np
import reverb
from reverb import errors as reverb_errors

from repertory.components.config import settings
from repertory.components.replay import batches, waits
from repertory.components.replay import tables as tables_lib
from repertory.components.runtime import signals, worker_thread

# A server answers at once, unless it is dead or its machine overloaded.
STATUS_TIMEOUT_SECONDS = 60

# Timeout of a status query during a wait.
_LOOK_SECONDS = 2

# The last file of a Reverb checkpoint, with the data of the items.
_DATA_FILE = 'chunks.tfrecord'
_CHUNK_BYTES = 2**20

# Priority updates that may be pending before the learner has to wait.
_MAX_PENDING = 8


class Connection(waits.WaitPolicy):
  """Address of a replay server, with the settings of waits on it."""

  def __init__(
    self,
    address: str,
    timeout_seconds: float = 600.0,
    stop: signals.StopSignal | None = None,
  ):
    """Takes an address 'host:port'; for the others see `WaitPolicy`."""
    super().__init__(timeout_seconds, stop or signals.StopSignal())
    self.address = address

  @functools.cached_property
  def client(self) -> reverb.Client:
    """The client, created on first use."""
    return reverb.Client(self.address)

  def __str__(self) -> str:
    return f'the replay server at {self.address}'

  def look(self, table: tables_lib.TableSpec) -> tables_lib.TableInfo:
    """Queries a table's status; raises an error after a short timeout."""
    return table_status(self.client, [table], _LOOK_SECONDS)[table.name]


def table_status(
  client: reverb.Client,
  tables: Sequence[tables_lib.TableSpec] = (),
  timeout_seconds: int | None = None,
) -> Mapping[str, tables_lib.TableInfo]:
  """Queries the status of a server's tables; describe those with bundles.

  Raises:
    TimeoutError: If the server does not answer in time, by default
      `STATUS_TIMEOUT_SECONDS`.
    ConnectionError: If the server goes away before its answer.
  """
  if timeout_seconds is None:
    timeout_seconds = STATUS_TIMEOUT_SECONDS
  try:
    infos = client.server_info(timeout=timeout_seconds)
  except reverb_errors.DeadlineExceededError as error:
    raise TimeoutError(
      f'The replay server at {client.server_address} did not answer within '
      f'{timeout_seconds} seconds.'
    ) from error
  except RuntimeError as error:
    raise ConnectionError(
      f'The replay server at {client.server_address} went away: '
      f'{settings.text_of(error)}.'
    ) from error
  sizes = {table.name: table.bundle_size for table in tables}
  return {
    name: _to_status(info, sizes.get(name, 1)) for name, info in infos.items()
  }


def _to_status(info, bundle_size: int) -> tables_lib.TableInfo:
  limiter = info.rate_limiter_info
  inserts = limiter.insert_stats.completed
  samples = limiter.sample_stats.completed
  difference = inserts * limiter.samples_per_insert - samples
  waiting = ''
  if info.current_size < limiter.min_size_to_sample:
    waiting = 'sample'
  elif difference + limiter.samples_per_insert > limiter.max_diff:
    waiting = 'insert'
  elif difference - 1 < limiter.min_diff:
    waiting = 'sample'
  return tables_lib.TableInfo(
    size=info.current_size * bundle_size,
    max_size=info.max_size * bundle_size,
    inserts=inserts * bundle_size,
    samples=samples * bundle_size,
    waiting=waiting,
  )


def write_checkpoint(connection: Connection) -> str:
  """Asks the server to write a checkpoint; returns its folder.

  Reverb's call has no timeout, so it needs a thread of its own.

  Raises:
    ReplayCheckpointError: If writing fails, perhaps because the disk is full.
    TimeoutError: If the server no longer answers.
    ConnectionError: If the server went away.
  """
  try:
    path = connection.client.checkpoint()
  except Exception as error:  # Reverb raises no specific type.
    table_status(connection.client)  # Raises if the server is gone.
    raise waits.ReplayCheckpointError(
      f'{connection} could not write a checkpoint: {settings.text_of(error)}'
    ) from error
  for file in sorted(glob.glob(os.path.join(path, '*.tfrecord'))):
    _check_complete(file)
  return path


def is_snapshot_taken(directory: str) -> bool:
  """Returns whether the checkpoint being written no longer changes.

  Reverb first collects the items of all tables, which is quick. Only then it
  begins the file with their data, which is slow. The directory must have been
  empty before the request.
  """
  return bool(glob.glob(os.path.join(directory, '*', _DATA_FILE)))


def _check_complete(file: str) -> None:
  """Raises an error for a truncated or damaged file, a zlib stream.

  Reverb does not notice if the disk has no room for its last bytes.
  """
  stream = zlib.decompressobj()
  try:
    with open(file, 'rb') as opened:
      while chunk := opened.read(_CHUNK_BYTES):
        stream.decompress(chunk)
  except zlib.error as error:
    raise waits.ReplayCheckpointError(
      f'The replay server wrote {file}, but it is damaged: {error}.'
    ) from error
  if not stream.eof:
    raise waits.ReplayCheckpointError(
      f'The replay server wrote {file}, but its end is missing. Is the disk '
      'full?'
    )


class PriorityUpdater(batches.Priorities):
  """Writes priorities to a replay server in a background thread.

  Reverb's call has no timeout and a dead server never answers it, so it must
  not block the learner. Updates keep the order of `update`. A non-finite
  priority would freeze the table for good.
  """

  def __init__(self, connection: Connection, table: str, floor: float):
    """Starts the thread.

    Args:
      connection: Its timeout and stop signal end a wait for earlier updates.
      table: Name of the table.
      floor: Smallest priority, positive.
    """
    super().__init__(floor)
    self._connection = connection
    self._table = table
    self._thread = worker_thread.WorkerThread('priority_updater')
    # A failed update stays, and all later calls raise its error.
    self._pending: collections.deque[futures.Future] = collections.deque()

  def update(self, keys: np.ndarray, priorities: np.ndarray) -> None:
    priorities = self._raise_to_floor(priorities)
    updates = dict(zip(keys.tolist(), priorities.tolist()))
    self._wait(_MAX_PENDING, 'new', self._connection.stop)
    write = self._thread.submit(
      lambda: self._connection.client.mutate_priorities(
        self._table, updates=updates
      )
    )
    self._pending.append(write)

  def flush(self) -> None:
    self._wait(0, 'the last', signals.StopSignal())

  def close(self, timeout_seconds: float = 5.0) -> None:
    """Writes the enqueued updates and ends the thread, within the timeout."""
    self._thread.close(timeout_seconds)

  def _wait(self, most: int, which: str, stop: signals.StopSignal) -> None:
    """Waits until at most `most` updates are pending; raises their errors."""

    def settle(seconds: float) -> bool:
      pending = self._pending
      while pending and (len(pending) > most or pending[0].done()):
        if not futures.wait([pending[0]], seconds).done:
          return False
        pending[0].result()
        pending.popleft()
      return True

    signals.wait_for(
      settle,
      lambda: (
        f'{self._connection} to take {which} priorities for table '
        f"'{self._table}'"
      ),
      self._connection.timeout_seconds,
      stop,
    )
