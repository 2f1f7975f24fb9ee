"""Checkpoints that a replay server writes of its tables."""

import glob
import os
import shutil
import zlib

from repertory.components.config import settings
from repertory.components.replay import connection as connection_lib
from repertory.components.replay import server

# The last file of a Reverb checkpoint, with the data of the items.
_DATA_FILE = 'chunks.tfrecord'
_CHUNK_BYTES = 2**20


class ReplayCheckpointError(RuntimeError):
  """A replay server that is otherwise healthy could not write a checkpoint."""


def write_checkpoint(connection: connection_lib.Connection) -> str:
  """Asks the server to write a checkpoint.

  Reverb's call has no timeout, so it needs a thread of its own.

  Returns:
    The checkpoint's folder.

  Raises:
    ReplayCheckpointError: If writing fails, perhaps because the disk is full.
    TimeoutError: If the server no longer answers.
    ConnectionError: If the server went away.
  """
  try:
    path = connection.client.checkpoint()
  except Exception as error:  # Reverb raises no specific type.
    server.table_status(connection.client)  # Raises if the server is gone.
    raise ReplayCheckpointError(
      f'{connection} could not write a checkpoint: {settings.text_of(error)}'
    ) from error
  _check_complete(path)
  return path


def is_snapshot_taken(directory: str) -> bool:
  """Returns whether the contents of the checkpoint being written are fixed.

  Reverb first collects the items of all tables, which is quick. Only then it
  begins the file with their data, which is slow. Later changes of the tables
  are not in the checkpoint.

  Args:
    directory: The server's checkpoint directory; empty before the request.
  """
  return bool(glob.glob(os.path.join(directory, '*', _DATA_FILE)))


def remove_checkpoints(directory: str) -> None:
  """Removes all checkpoints of a server, including unfinished ones.

  The server itself keeps the newest checkpoint, and never removes unfinished
  ones.

  Args:
    directory: The server's checkpoint directory.
  """
  if os.path.isdir(directory):
    for name in os.listdir(directory):
      shutil.rmtree(os.path.join(directory, name))


def _check_complete(path: str) -> None:
  """Raises an error for truncated or damaged files.

  Reverb does not notice if the disk has no room for the last bytes of a file.
  The files are zlib streams, which mark their end.
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
