"""Transfer of checkpoints between nodes, possibly on different hosts.

An archive is an uncompressed zip file of a checkpoint's folder. It is sent in
chunks, which bounds the size of a call.
"""

import contextlib
import io
import json
import os
import shutil
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent import futures
from typing import Any

import numpy as np

from repertory.components.checkpoints import checkpointing
from repertory.launch.experiments import directories
from repertory.launch.experiments import session as session_lib
from repertory.launch.nodes import checkpoints

_CHUNK_BYTES = 4 << 20
_JOIN_SECONDS = 5.0


def pack(folder: str, path: str) -> None:
  """Packs a checkpoint's folder into a new archive."""
  with open(path, 'wb') as file, zipfile.ZipFile(file, 'w') as archive:
    for root, _, names in os.walk(folder):
      for name in sorted(names):
        inside = os.path.relpath(os.path.join(root, name), folder)
        archive.write(os.path.join(root, name), inside)


def unpack(path: str, directory: str) -> None:
  """Adds an archived checkpoint to those of a directory."""

  def extract(folder: str) -> None:
    with zipfile.ZipFile(path) as archive:
      archive.extractall(folder)

  checkpointing.Checkpointer(directory, max_to_keep=1).add(extract)


def read_state(path: str) -> Mapping[str, Any]:
  """Returns the state of an archived checkpoint."""
  with zipfile.ZipFile(path) as archive:
    return json.loads(archive.read(checkpointing.STATE))


def read_arrays(path: str) -> dict[str, np.ndarray]:
  """Returns the arrays of an archived checkpoint."""
  arrays: dict[str, np.ndarray] = {}
  with zipfile.ZipFile(path) as archive:
    for name in archive.namelist():
      if name in (checkpointing.POLICY_ARRAYS, checkpointing.ARRAYS):
        arrays |= checkpointing.read_arrays(io.BytesIO(archive.read(name)))
  return arrays


def read_chunk(path: str, offset: int) -> bytes:
  """Returns the chunk of an archive at an offset; b'' at its end."""
  with open(path, 'rb') as file:
    file.seek(offset)
    return file.read(_CHUNK_BYTES)


def read_chunks(path: str) -> Iterator[tuple[int, bytes, bool]]:
  """Yields offset, bytes and an is-last flag of each chunk of an archive."""
  offset, size = 0, os.path.getsize(path)
  while offset < size:
    chunk = read_chunk(path, offset)
    yield offset, chunk, offset + len(chunk) == size
    offset += len(chunk)


class CheckpointUpload:
  """Writes checkpoints of a learner, and uploads them in the background."""

  def __init__(
    self,
    session: session_lib.Session,
    writer: checkpoints.CheckpointWriter,
    gossip_node: Any,
    caller: Sequence[Any],
  ):
    """Starts without an upload."""
    self._path = os.path.join(session.checkpoint_directory, '.archive')
    self._directory = session.experiment.directory
    self._timeout_seconds = session.experiment.timeout_seconds
    self._writer = writer
    self._gossip = gossip_node
    self._caller = tuple(caller)
    self._sent: str | None = None
    self._sending: futures.Future | None = None
    self._is_closed = False

  def advance(self) -> None:
    """Begins the upload of a new checkpoint, or a checkpoint that is due."""
    if self._sending is not None:
      if not self._sending.done():
        return
      sending, self._sending = self._sending, None
      sending.result()
    if self._writer.is_writing():
      return
    written = self._writer.path
    if written in (None, self._sent):
      self._writer.write_if_due()
      return
    self._sent = written
    self._sending = checkpoints.start(lambda: self._send(written))

  def finish(self) -> None:
    """Writes and uploads the final checkpoint, and blocks until it is done."""
    if self._sending is not None:
      if not futures.wait([self._sending], self._timeout_seconds).done:
        raise TimeoutError(
          f'Waited {self._timeout_seconds:g} seconds for a checkpoint of this '
          'learner to be uploaded.'
        )
      self._sending.result()
    if (written := self._writer.write()) is not None:
      self._send(written)

  def close(self) -> None:
    """Ends the upload, and removes local checkpoints."""
    self._is_closed = True
    if self._sending is not None:
      futures.wait([self._sending], _JOIN_SECONDS)
    folder = os.path.join(self._directory, directories.CHECKPOINTS)
    shutil.rmtree(folder, ignore_errors=True)
    with contextlib.suppress(OSError):  # It has other files.
      os.removedirs(self._directory)

  def _send(self, written: str) -> None:
    try:
      pack(written, self._path)
    except OSError as error:  # The disk may have no room for it.
      with contextlib.suppress(OSError):
        os.remove(self._path)
      self._writer.fail(error)
      return
    for chunk in read_chunks(self._path):
      if self._is_closed:
        return
      if not self._gossip.deposit(self._caller, *chunk):
        break  # The gossip node reports that it could not write it.
    os.remove(self._path)
