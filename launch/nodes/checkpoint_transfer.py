"""Transfer of checkpoints between nodes, possibly on different hosts.

An archive is an uncompressed zip file of a checkpoint's folder. It is sent in
chunks, which bounds the size of a call.
"""

import contextlib
import io
import json
import os
import shutil
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent import futures
from typing import Any

import numpy as np

from repertory.components.checkpoints import checkpointing
from repertory.components.runtime import signals
from repertory.launch.nodes import checkpoints
from repertory.launch.opening import directories
from repertory.launch.opening import session as session_lib

_CHUNK_BYTES = 4 << 20
_JOIN_SECONDS = 5.0
_POLL_SECONDS = 0.05


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
  with zipfile.ZipFile(path) as archive:
    data = io.BytesIO(archive.read(checkpointing.ARRAYS))
  with np.load(data, allow_pickle=False) as arrays:
    return {name: arrays[name] for name in arrays.files}


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


def download(path: str, request: Callable[[int], bytes]) -> None:
  """Downloads an archive.

  Args:
    request: Returns the chunk at an offset, b'' at the end.
  """
  os.makedirs(os.path.dirname(path), exist_ok=True)
  with open(path, 'wb') as file:
    while chunk := request(file.tell()):
      file.write(chunk)


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
    self._number: int | None = None
    self._sending: futures.Future | None = None
    self._is_closed = False

  @property
  def is_busy(self) -> bool:
    """Whether a checkpoint is being written or uploaded."""
    return self._number is not None

  def begin(self, number: int) -> None:
    """Begins to write a checkpoint; calls of `advance` then upload it.

    Args:
      number: Number of its order; 0 for the final checkpoint.
    """
    self._number = number
    self._writer.begin()

  def advance(self) -> None:
    """Advances the checkpoint; raises errors of its write or upload."""
    number = self._number
    if number is None:
      return
    if self._sending is None:
      if not self._writer.is_writing():
        self._sending = checkpoints.start(lambda: self._send(number))
    elif self._sending.done():
      sending, self._sending, self._number = self._sending, None, None
      sending.result()

  def finish(self) -> None:
    """Writes and uploads the final checkpoint, and blocks until it is done.

    Raises:
      TimeoutError: If it takes too long.
      Exception: Error of its write or upload.
    """
    self._wait()
    self.begin(0)
    self._wait()

  def close(self) -> None:
    """Ends the upload, and removes local checkpoints."""
    self._is_closed = True
    if self._sending is not None:
      futures.wait([self._sending], _JOIN_SECONDS)
    folder = os.path.join(self._directory, directories.CHECKPOINTS)
    shutil.rmtree(folder, ignore_errors=True)
    with contextlib.suppress(OSError):  # It has other files.
      os.removedirs(self._directory)

  def _wait(self) -> None:
    def is_done(seconds: float) -> bool:
      self.advance()
      if self.is_busy:
        time.sleep(min(seconds, _POLL_SECONDS))
      return not self.is_busy

    # Not the node's own signal: a stopped node still saves.
    signals.wait_for(
      is_done,
      lambda: 'a checkpoint of this learner to be written and uploaded',
      self._timeout_seconds,
      signals.StopSignal(),
    )

  def _send(self, number: int) -> None:
    """Uploads the written checkpoint, if any; in a thread of its own."""
    written = self._writer.path
    if written is None or not self._pack(written):
      self._gossip.fail_to_deposit(self._caller, number)
      return
    for chunk in read_chunks(self._path):
      if self._is_closed:
        return
      if not self._gossip.deposit(self._caller, number, *chunk):
        break  # The gossip node reports that it could not write it.
    os.remove(self._path)

  def _pack(self, written: str) -> bool:
    """Packs a checkpoint; returns False if the disk has no room for it."""
    try:
      pack(written, self._path)
    except OSError as error:
      with contextlib.suppress(OSError):
        os.remove(self._path)
      self._writer.fail(error)
      return False
    return True
