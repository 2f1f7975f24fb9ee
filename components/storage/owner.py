"""Who uses a storage, where nothing can be locked.

A small file names the run, and changes every few seconds while it lives. That
is no lock: it lets two runs notice each other, and what they write does not
depend on it, see `shelf`.
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

from repertory.components.settings import SettingError
from repertory.components.storage import places

_FILE = 'owner.json'

# How often the file changes.
_BEAT_SECONDS = 10.0
# For how long it must not change for its run to be taken for gone.
_WATCH_SECONDS = 25.0
_LOOK_SECONDS = 1.0
# How long the end of a run waits for the file to be removed.
_CLOSE_SECONDS = 5.0


class OwnerLostError(RuntimeError):
  """Another run has taken the storage."""


class Owner:
  """Tells others that this run uses a storage, and hears of them."""

  def __init__(self, place: places.Place, shown: str, directory: str):
    """Writes nothing yet.

    Args:
      place: The storage, as an object that nobody else uses.
      shown: The storage, for messages.
      directory: The run's.
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
    self._has_beaten = False
    self._problem = ''
    self._lock = threading.Lock()
    self._ended = threading.Event()

  @contextlib.contextmanager
  def hold(self, tell: Callable[[str], None]) -> Iterator[None]:
    """Is the owner during the block, unless another run takes over.

    Args:
      tell: Hears, in words, of what takes a while.

    Raises:
      SettingError: If another run is.
    """
    self._wait_for_others(tell)
    self._beat()
    self._look()
    if self._problem:  # Both began at the same moment.
      raise SettingError('storage', f'must not be in use, but {self._problem}.')
    thread = threading.Thread(
      target=self._keep_on, name='storage-owner', daemon=True
    )
    thread.start()
    try:
      yield
    finally:
      self._ended.set()
      thread.join(_CLOSE_SECONDS)

  def check(self) -> None:
    """Raises OwnerLostError if another run has taken over."""
    self._look()
    if self._problem:
      raise OwnerLostError(self._problem)

  def _wait_for_others(self, tell: Callable[[str], None]) -> None:
    """Waits until it is clear that nobody else uses the storage."""
    first = self._read()
    if first is None or _is_dead(first):
      return
    tell(
      f'{self._shown} was not left by {_describe(first)}; waiting up to '
      f'{_WATCH_SECONDS:g} s to see whether that still runs'
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
          f'{self._shown}. Give each run a storage of its own, or end that '
          'one.',
        )

  def _keep_on(self) -> None:
    """Changes the file until the end, and removes it then."""
    while not self._ended.wait(_BEAT_SECONDS):
      # The disk or network may be back next time.
      with contextlib.suppress(OSError):
        self._look()
        if not self._problem:
          self._beat()
    with contextlib.suppress(OSError):
      self._look()
      if not self._problem:
        with self._lock:
          self._place.remove(_FILE)

  def _look(self) -> None:
    """Notes whether the file is another's, from which there is no way back.

    So it is where there is none any more: another run may have taken over,
    trained, and removed it at its end.
    """
    if self._problem:
      return
    content = self._read()
    if content is None:
      if self._has_beaten:
        self._problem = (
          f'{self._shown}/{_FILE}, which named this run, is gone, as it is '
          f'after another run has used {self._shown}'
        )
    elif content.get('token') != self._fields['token']:
      self._problem = f'{_describe(content)} has taken {self._shown} for itself'

  def _beat(self) -> None:
    self._num_beats += 1
    content = {**self._fields, 'beats': self._num_beats}
    with self._lock:
      self._place.publish(_FILE, json.dumps(content).encode())
    self._has_beaten = True

  def _read(self) -> dict[str, Any] | None:
    """Returns what is in the file; None if it is not there."""
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
  """Whether the run was a process of this machine that is no more."""
  process = content.get('process')
  if not isinstance(process, int) or content.get('machine') != _machine():
    return False
  return bool(_machine()) and not psutil.pid_exists(process)


def _machine() -> str:
  """Returns what processes have in common whose numbers can be compared."""
  try:
    with open('/proc/sys/kernel/random/boot_id') as file:
      return f'{file.read().strip()} {os.readlink("/proc/self/ns/pid")}'
  except OSError:
    return ''
