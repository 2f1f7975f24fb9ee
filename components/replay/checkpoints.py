"""Checkpoints that a replay server writes of its tables."""

import glob
import os
import shutil
import zlib

from repertory.components import settings
from repertory.components.replay import connection as connection_lib
from repertory.components.replay import server

# The last file that Reverb begins, which holds the data of the items.
_DATA_FILE = 'chunks.tfrecord'
_CHUNK_BYTES = 2**20  # Read at once.


class ReplayCheckpointError(RuntimeError):
  """A replay server, which otherwise is well, could not write a checkpoint."""


def write_checkpoint(connection: connection_lib.Connection) -> str:
  """Lets the server write a checkpoint.

  Reverb's call has no time-out: make it in a thread of its own.

  Returns:
    The checkpoint's folder.

  Raises:
    ReplayCheckpointError: If it cannot, perhaps because the disk is full.
    TimeoutError: If the server does not answer any more.
    ConnectionError: If it went away.
  """
  try:
    path = connection.client.checkpoint()
  except Exception as error:  # Reverb has no type for it.
    server.table_status(connection.client)  # Is the server well?
    raise ReplayCheckpointError(
      f'{connection} could not write a checkpoint: {settings.text_of(error)}'
    ) from error
  _check_complete(path)
  return path


def is_snapshot_taken(directory: str) -> bool:
  """Returns whether it is settled what is in the checkpoint being written.

  Reverb first takes all items of all tables, which is quick, and only then
  begins the file with their data, which is not: data do not change. So what
  happens to the tables from then on is not in the checkpoint.

  Args:
    directory: Where the server checkpoints; empty when it was asked for one.
  """
  return bool(glob.glob(os.path.join(directory, '*', _DATA_FILE)))


def remove_checkpoints(directory: str) -> None:
  """Removes all a server wrote, also what it did not finish.

  The server itself keeps the newest, and for good what it could not finish.

  Args:
    directory: Where the server checkpoints.
  """
  if os.path.isdir(directory):
    for name in os.listdir(directory):
      shutil.rmtree(os.path.join(directory, name))


def _check_complete(path: str) -> None:
  """Finds files that are cut off or damaged.

  Reverb does not notice when the last bytes of a file find no room. Files are
  zlib streams, which tell their end.
  """
  for file in sorted(glob.glob(os.path.join(path, '*.tfrecord'))):
    stream = zlib.decompressobj()
    with open(file, 'rb') as opened:
      while chunk := opened.read(_CHUNK_BYTES):
        _decompress(stream, chunk, file)
    if not stream.eof:
      raise ReplayCheckpointError(
        f'The replay server wrote {file}, but its end is missing. Is the disk '
        'full?'
      )


def _decompress(stream, chunk: bytes, file: str) -> None:
  try:
    stream.decompress(chunk)
  except zlib.error as error:
    raise ReplayCheckpointError(
      f'The replay server wrote {file}, but it is damaged: {error}.'
    ) from error
