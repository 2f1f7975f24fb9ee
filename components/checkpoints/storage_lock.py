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

import psutil

from repertory.components.checkpoints import backends
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
    self, place: backends.StorageBackend, shown: str, directory: str
  ):
    """Initializes the owner, without writing.

    Args:
      place: Storage backend, not shared with others.
      shown: Name of the storage, for messages.
      directory: Directory of the run.
    """
    self._place = place
    self._shown = shown
    self._fields = {
      'token': uuid.uuid4().hex,
      'host': socket.gethostname(),
      'process': os.getpid(),
      'machine': _machine(),
      'directory': os.path.abspath(directory),
    }
    self._num_beats = 0
    self._has_file = False
    self._problem = ''
    self._lock = threading.Lock()
    self._ended = threading.Event()

  @contextlib.contextmanager
  def hold(self, report: Callable[[str], None]) -> Iterator[None]:
    """Owns the storage during the block, unless another run takes over.

    Args:
      report: Function that logs messages about long waits.

    Raises:
      SettingError: If another run owns the storage.
    """
    self._wait_for_others(report)
    self._send_heartbeat()
    self._look()
    if self._problem:  # Two runs started at the same time.
      raise SettingError('storage', f'must not be in use, but {self._problem}.')
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
    """Raises LockLostError if another run has taken over."""
    self._look()
    if self._problem:
      raise LockLostError(self._problem)

  def _wait_for_others(self, report: Callable[[str], None]) -> None:
    """Waits until it is clear that no other run uses the storage."""
    first = self._read()
    if first is None or _is_dead(first):
      return
    report(
      f'{self._shown} was not released by {_describe(first)}; waiting up to '
      f'{_WATCH_SECONDS:g} s to see whether that run is alive'
    )
    deadline = time.monotonic() + _WATCH_SECONDS
    while time.monotonic() < deadline:
      time.sleep(min(_LOOK_SECONDS, _WATCH_SECONDS / 4))
      content = self._read()
      if content is None:
        return
      if content != first:
        raise SettingError(
          'storage',
          f'must not be in use, but {_describe(content)} stores to '
          f'{self._shown}. Give each run a storage of its own, or stop that '
          'run.',
        )

  def _send_heartbeats(self) -> None:
    """Sends heartbeats until the end, then removes the file."""
    while not self._ended.wait(_HEARTBEAT_SECONDS):
      # The disk or network may be back next time.
      with contextlib.suppress(OSError):
        self._look()
        if not self._problem:
          self._send_heartbeat()
    with contextlib.suppress(OSError):
      self._look()
      if not self._problem:
        with self._lock:
          self._place.remove(_FILE)

  def _look(self) -> None:
    """Records whether another run has taken over, which is final.

    A missing file counts as well: another run may have taken over, trained, and
    removed the file at its end.
    """
    if self._problem:
      return
    content = self._read()
    if content is None:
      if self._has_file:
        self._problem = (
          f'{self._shown}/{_FILE}, which named this run, is gone, as it is '
          f'after another run has used {self._shown}'
        )
    elif content.get('token') != self._fields['token']:
      self._problem = f'{_describe(content)} has taken over {self._shown}'

  def _send_heartbeat(self) -> None:
    self._num_beats += 1
    content = {**self._fields, 'beats': self._num_beats}
    with self._lock:
      self._place.publish(_FILE, json.dumps(content).encode())
    self._has_file = True

  def _read(self) -> dict[str, Any] | None:
    """Returns the contents of the file; None if it does not exist."""
    try:
      with self._lock:
        text = b''.join(self._place.read(_FILE))
    except FileNotFoundError:
      return None
    try:
      content = json.loads(text)
    except ValueError:
      content = None
    return content if isinstance(content, dict) else {'content': repr(text)}


def _describe(content: dict[str, Any]) -> str:
  return 'the run of process {} on host {}, in {}'.format(
    *(content.get(name, '?') for name in ('process', 'host', 'directory'))
  )


def _is_dead(content: dict[str, Any]) -> bool:
  """Returns whether the run's process was on this machine and has ended."""
  process = content.get('process')
  if not isinstance(process, int) or content.get('machine') != _machine():
    return False
  return bool(_machine()) and not psutil.pid_exists(process)


def _machine() -> str:
  """Returns the identity of the machine's boot and process namespace."""
  try:
    with open('/proc/sys/kernel/random/boot_id') as file:
      return f'{file.read().strip()} {os.readlink("/proc/self/ns/pid")}'
  except OSError:
    return ''
