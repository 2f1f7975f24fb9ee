"""Ownership of a storage, where locks are not available.

A small file names the run, and changes every few seconds while it runs. It is
not a lock: it lets two runs notice each other, and the correctness of their
files does not depend on it, see `checkpoint_store`.
"""

import contextlib
import json
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any

from repertory.components.checkpoints import storage_folder
from repertory.components.config.settings import SettingError

_FILE = 'owner.json'

# Interval of heartbeats, which change the file.
_HEARTBEAT_SECONDS = 10.0
# Time without a change after which the owner counts as dead.
_WATCH_SECONDS = 25.0
_LOOK_SECONDS = 1.0
# Timeout for the removal of the file at the end of a run.
_CLOSE_SECONDS = 5.0


class LockLostError(RuntimeError):
  """Another run has taken over the storage."""


class StorageLock:
  """Claims a storage for this run, and detects other runs."""

  def __init__(
    self, folder: storage_folder.StorageFolder, shown: str, directory: str
  ):
    """Initializes the lock, without writing; `folder` is used by one thread."""
    self._folder = folder
    self._shown = shown
    self._content: dict[str, Any] = {
      'token': uuid.uuid4().hex,
      'host': socket.gethostname(),
      'process': os.getpid(),
      'directory': os.path.abspath(directory),
      'beats': 0,
    }
    self._problem = ''
    self._access = threading.RLock()
    self._ended = threading.Event()

  @contextlib.contextmanager
  def owning(self, report: Callable[[str], None]) -> Iterator[None]:
    """Owns the storage during the block, unless another run takes over.

    Args:
      report: Function that logs messages about long waits.

    Raises:
      SettingError: If another run owns the storage.
    """
    if other := self._read():
      report(
        f'{self._shown} was not released by {_describe(other)}; waiting up to '
        f'{_WATCH_SECONDS:g} s to see whether that run is alive'
      )
      self._watch(other)
    self._send_heartbeat()
    try:
      self.check()
    except LockLostError as error:  # Two runs started at the same time.
      raise SettingError(
        'storage', f'must not be in use, but {error}.'
      ) from error
    thread = threading.Thread(
      target=self._send_heartbeats, name='storage-owner', daemon=True
    )
    thread.start()
    try:
      yield
    finally:
      self._ended.set()
      thread.join(_CLOSE_SECONDS)

  def check(self) -> None:
    """Raises LockLostError if another run has taken over, which is final."""
    with self._access:
      if not self._problem:
        content = self._read()
        if content is None:
          self._problem = (
            f'{self._shown}/{_FILE}, which named this run, is gone, as it is '
            f'after another run has used {self._shown}'
          )
        elif content.get('token') != self._content['token']:
          self._problem = f'{_describe(content)} has taken over {self._shown}'
    if self._problem:
      raise LockLostError(self._problem)

  def _watch(self, other: dict[str, Any]) -> None:
    """Waits until another run's file is gone, or has not changed for long."""
    deadline = time.monotonic() + _WATCH_SECONDS
    while time.monotonic() < deadline and (content := self._read()):
      if content != other:
        raise SettingError(
          'storage',
          f'must not be in use, but {_describe(content)} stores to '
          f'{self._shown}. Give each run a storage of its own, or stop that '
          'run.',
        )
      time.sleep(min(_LOOK_SECONDS, _WATCH_SECONDS / 4))

  def _send_heartbeats(self) -> None:
    """Sends heartbeats until the end, then removes the file."""
    is_last = False
    while not is_last:
      is_last = self._ended.wait(_HEARTBEAT_SECONDS)
      # The disk or network may be back next time.
      with self._access, contextlib.suppress(Exception):
        self.check()
        if is_last:
          self._folder.remove(_FILE)
        else:
          self._send_heartbeat()

  def _send_heartbeat(self) -> None:
    self._content['beats'] += 1
    self._folder.publish(_FILE, json.dumps(self._content).encode())

  def _read(self) -> dict[str, Any] | None:
    """Returns the contents of the file; None if it does not exist."""
    try:
      text = self._folder.read(_FILE)
    except FileNotFoundError:
      return None
    try:
      return json.loads(text)
    except ValueError:
      return {'content': repr(text)}


def _describe(content: dict[str, Any]) -> str:
  return 'the run of process {} on host {}, in {}'.format(
    *(content.get(name, '?') for name in ('process', 'host', 'directory'))
  )
