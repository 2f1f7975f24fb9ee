"""The directory of a run, which one run at a time may hold."""

import contextlib
import datetime
import fcntl
import os
from collections.abc import Iterator
from typing import IO

_LOCK = '.lock'
# Another run may move a directory aside between two looks at it.
_NUM_ATTEMPTS = 3


def check_writable(directory: str) -> None:
  """Raises ValueError unless the directory can be made and written to."""
  obstacle = ''
  for _ in range(_NUM_ATTEMPTS):
    obstacle = _find_obstacle(directory)
    if not obstacle:
      return
  raise ValueError(obstacle)


def _find_obstacle(directory: str) -> str:
  existing = os.path.abspath(directory)
  while not os.path.exists(existing):
    existing = os.path.dirname(existing)
  if not os.path.isdir(existing):
    return (
      f'directory must be a folder, got {directory}, where {existing} is a '
      'file.'
    )
  if not os.access(existing, os.W_OK | os.X_OK):
    return (
      f'directory must be writable, got {directory}: no permission to write '
      f'in {existing}.'
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

  Raises:
    ValueError: If another run holds it, or it cannot be made.
  """
  with _open_lock(directory) as file:
    try:
      fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
      # Another run may have moved the directory aside meanwhile.
      is_ours = os.path.samestat(os.fstat(file.fileno()), os.stat(file.name))
    except (BlockingIOError, FileNotFoundError):
      is_ours = False
    if not is_ours:
      raise ValueError(
        f'directory must not be in use, but another run writes to {directory}.'
      )
    yield


def _open_lock(directory: str) -> IO:
  attempt = 0
  while True:
    attempt += 1
    try:
      os.makedirs(directory, exist_ok=True)
      return open(os.path.join(directory, _LOCK), 'w')
    except OSError as error:
      is_moved = isinstance(error, (FileExistsError, FileNotFoundError))
      if not is_moved or attempt == _NUM_ATTEMPTS:
        raise ValueError(
          f'directory must be writable, got {directory}: {error}.'
        ) from error
