"""Brings a learner's checkpoints to the node that keeps those of all."""

import contextlib
import os
import shutil
import threading
import time
from collections.abc import Sequence
from typing import Any

from repertory.components import signals
from repertory.launch.nodes import checkpoints, gossip_messages, parcels
from repertory.launch.runs import directories
from repertory.launch.runs import session as session_lib

_JOIN_SECONDS = 5.0
_POLL_SECONDS = 0.05


class Shipping:
  """Lets a learner save, and sends what it wrote while it goes on."""

  def __init__(
    self,
    session: session_lib.Session,
    writer: checkpoints.CheckpointWriter,
    gossip_node: Any,
    caller: Sequence[Any],
  ):
    """Sends nothing yet.

    Args:
      session: The learner's own.
      writer: Writes the learner's checkpoints.
      gossip_node: Takes what is sent; or its client.
      caller: Who sends.
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
    """Whether a checkpoint is being written or sent."""
    return self._label is not None

  def begin(self, label: gossip_messages.Label) -> None:
    """Saves what there is now; it is sent as `go_on` is called.

    Args:
      label: What is sent with it.
    """
    self._label = label
    self._writer.begin()

  def go_on(self) -> None:
    """Sees how the checkpoint that is being written or sent is.

    Raises:
      Exception: What kept it from being written or sent.
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
    """Saves and sends what there is at the end, and waits for that.

    Raises:
      TimeoutError: If it takes too long.
      Exception: What kept it from being written or sent.
    """
    self._wait()
    self.begin(label)
    self._wait()

  def close(self) -> None:
    """Ends the thread, and removes what has been sent."""
    self._is_closed = True
    if self._thread is not None:
      self._thread.join(_JOIN_SECONDS)
    folder = os.path.join(self._directory, directories.CHECKPOINTS)
    shutil.rmtree(folder, ignore_errors=True)
    with contextlib.suppress(OSError):  # Something else is in it.
      os.removedirs(self._directory)

  def _wait(self) -> None:
    def look(seconds: float) -> bool:
      self.go_on()
      if self.is_busy:
        time.sleep(min(seconds, _POLL_SECONDS))
      return not self.is_busy

    # Not the node's own: who is told to stop saves all the same.
    signals.wait_for(
      look,
      lambda: 'a checkpoint of this learner to be written and sent',
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
          break  # It could not be kept there, which is told there.
      os.remove(self._path)
    except BaseException as error:  # Raised in the thread of the learner.
      self._error = error

  def _pack(self, written: str) -> bool:
    """Packs a checkpoint; returns whether the disk had room for it."""
    try:
      parcels.pack(written, self._path)
    except OSError as error:
      with contextlib.suppress(OSError):
        os.remove(self._path)
      self._writer.fail(error)
      return False
    return True
