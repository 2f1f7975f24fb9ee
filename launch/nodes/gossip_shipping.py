"""Uploads a learner's checkpoints to the gossip node."""

import contextlib
import os
import shutil
import threading
import time
from collections.abc import Sequence
from typing import Any

from repertory.components.runtime import signals
from repertory.launch.nodes import checkpoints, gossip_messages, parcels
from repertory.launch.opening import directories
from repertory.launch.opening import session as session_lib

_JOIN_SECONDS = 5.0
_POLL_SECONDS = 0.05


class Shipping:
  """Writes checkpoints of a learner, and uploads them in the background."""

  def __init__(
    self,
    session: session_lib.Session,
    writer: checkpoints.CheckpointWriter,
    gossip_node: Any,
    caller: Sequence[Any],
  ):
    """Starts without an upload.

    Args:
      session: Session of the learner.
      writer: Writer of the learner's checkpoints.
      gossip_node: The gossip node or its client.
      caller: Caller identity of the learner.
    """
    self._path = os.path.join(session.checkpoint_directory, '.parcel')
    self._directory = session.experiment.directory
    self._timeout_seconds = session.experiment.timeout_seconds
    self._writer = writer
    self._gossip = gossip_node
    self._caller = tuple(caller)
    self._label: gossip_messages.Label | None = None
    self._thread: threading.Thread | None = None
    self._error: BaseException | None = None
    self._is_closed = False

  @property
  def is_busy(self) -> bool:
    """Whether a checkpoint is being written or uploaded."""
    return self._label is not None

  def begin(self, label: gossip_messages.Label) -> None:
    """Begins to write a checkpoint; calls of `go_on` then upload it.

    Args:
      label: Label of the checkpoint.
    """
    self._label = label
    self._writer.begin()

  def go_on(self) -> None:
    """Advances the checkpoint that is being written or uploaded.

    Raises:
      Exception: Error of its write or upload.
    """
    if self._label is None:
      return
    if self._thread is None:
      if not self._writer.is_writing():
        self._thread = threading.Thread(
          target=self._send, name='parcel', daemon=True
        )
        self._thread.start()
    elif not self._thread.is_alive():
      self._thread = self._label = None
      if self._error is not None:
        raise self._error

  def finish(self, label: gossip_messages.Label) -> None:
    """Writes and uploads the final checkpoint, and blocks until it is done.

    Raises:
      TimeoutError: If it takes too long.
      Exception: Error of its write or upload.
    """
    self._wait()
    self.begin(label)
    self._wait()

  def close(self) -> None:
    """Ends the thread, and removes local checkpoints."""
    self._is_closed = True
    if self._thread is not None:
      self._thread.join(_JOIN_SECONDS)
    folder = os.path.join(self._directory, directories.CHECKPOINTS)
    shutil.rmtree(folder, ignore_errors=True)
    with contextlib.suppress(OSError):  # It has other files.
      os.removedirs(self._directory)

  def _wait(self) -> None:
    def look(seconds: float) -> bool:
      self.go_on()
      if self.is_busy:
        time.sleep(min(seconds, _POLL_SECONDS))
      return not self.is_busy

    # Not the node's own signal: a stopped node still saves.
    signals.wait_for(
      look,
      lambda: 'a checkpoint of this learner to be written and uploaded',
      self._timeout_seconds,
      signals.StopSignal(),
    )

  def _send(self) -> None:
    label, written = self._label, self._writer.path
    try:
      if written is None or not self._pack(written):
        self._gossip.fail_to_deposit(self._caller, label)
        return
      for offset, data, is_last in parcels.chunks_of(self._path):
        if self._is_closed:
          return
        if not self._gossip.deposit(self._caller, label, offset, data, is_last):
          break  # The gossip node reports that it could not write it.
      os.remove(self._path)
    except BaseException as error:  # Raised in the learner's thread.
      self._error = error

  def _pack(self, written: str) -> bool:
    """Packs a checkpoint; returns False if the disk has no room for it."""
    try:
      parcels.pack(written, self._path)
    except OSError as error:
      with contextlib.suppress(OSError):
        os.remove(self._path)
      self._writer.fail(error)
      return False
    return True
