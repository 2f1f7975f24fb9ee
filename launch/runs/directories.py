"""The directory of a run, which one run at a time may hold."""

import contextlib
import datetime
import fcntl
import os
from collections.abc import Iterator

from repertory.components.settings import SettingError

_LOCK = '.lock'
# Another run may move a directory aside between two looks at it.
_NUM_ATTEMPTS = 3


def check_writable(directory: str) -> None:
  """Raises SettingError unless the directory can be made and written to."""
  obstacle = ''
  for _ in range(_NUM_ATTEMPTS):
    obstacle = _find_obstacle(directory)
    if not obstacle:
      return
  raise SettingError('directory', obstacle)


def _find_obstacle(directory: str) -> str:
  existing = os.path.abspath(directory)
  while not os.path.exists(existing):
    existing = os.path.dirname(existing)
  if not os.path.isdir(existing):
    return f'must be a folder, got {directory}, where {existing} is a file.'
  if not os.access(existing, os.W_OK | os.X_OK):
    return (
      f'must be writable, got {directory}: no permission to write in '
      f'{existing}.'
    )
  return ''


def move_aside(directory: str) -> bool:
  """Renames a directory that is held; returns whether anything was in it."""
  if os.listdir(directory) == [_LOCK]:
    return False
  stamp = datetime.datetime.now().strftime('%Y%m%d-%H%M%S.%f')
  os.rename(directory, f'{os.path.normpath(directory)}.{stamp}')
  return True


@contextlib.contextmanager
def hold(directory: str) -> Iterator[None]:
  """Makes and holds a directory, so that no second run writes to it.

  It is free at the end of the block or of this process, whichever way that
  ends, though processes that were started meanwhile live on, as those of an
  environment may.

  Raises:
    SettingError: If another run holds it, or it cannot be made.
  """
  descriptor = _open_lock(directory)
  _held.add(descriptor)
  try:
    if not _lock(descriptor, directory):
      raise SettingError(
        'directory',
        f'must not be in use, but another run writes to {directory}.',
      )
    yield
  finally:
    # A process that was forked leaves the block without having the lock.
    if descriptor in _held:
      _held.remove(descriptor)
      with contextlib.suppress(OSError):  # A file system without locks.
        # Closing would not do it while others have copies of the descriptor.
        fcntl.flock(descriptor, fcntl.LOCK_UN)
      os.close(descriptor)


def _open_lock(directory: str) -> int:
  attempt = 0
  while True:
    attempt += 1
    try:
      os.makedirs(directory, exist_ok=True)
      # Python lets no other program inherit it.
      path = os.path.join(directory, _LOCK)
      return os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
      is_moved = isinstance(error, (FileExistsError, FileNotFoundError))
      if not is_moved or attempt == _NUM_ATTEMPTS:
        raise SettingError(
          'directory', f'must be writable, got {directory}: {error}.'
        ) from error


def _lock(descriptor: int, directory: str) -> bool:
  """Returns whether the lock was free and is that of the directory."""
  try:
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    # Another run may have moved the directory aside meanwhile.
    return os.path.samestat(
      os.fstat(descriptor), os.stat(os.path.join(directory, _LOCK))
    )
  except OSError:
    return False


def _close_copies() -> None:
  """Closes, in a process that was forked, what is the other one's to hold."""
  while _held:
    os.close(_held.pop())


# Descriptors of the locks that this process has.
_held: set[int] = set()
os.register_at_fork(after_in_child=_close_copies)
