"""Directory of a run: folders, checks, and a lock for one run at a time."""

import contextlib
import datetime
import fcntl
import os
import re
import stat
import tempfile
import time
from collections.abc import Iterable, Iterator

from repertory.components.checkpoints import checkpointing
from repertory.components.config import regular_files
from repertory.components.config.settings import SettingError
from repertory.launch.platform import printed

# Folders in the directory of a run.
LOGS, CHECKPOINTS, DIVERGED = 'logs', 'checkpoints', 'diverged'
BEST = 'best'  # Policy of the best evaluation.
INITIAL = 'initial'  # Initial networks, from another run.
LEARNERS = '.learners'  # One folder for each of several learners.
STORING = '.storing'  # Hard links to checkpoints being uploaded.
FOLDERS = (LOGS, CHECKPOINTS, BEST, DIVERGED, INITIAL)

LOCK = '.lock'
# `is_held` takes a directory's lock for a short time.
_LOOK_SECONDS = 0.05

# Names of entries that are neither files nor folders.
_KINDS = {
  stat.S_IFLNK: 'symbolic link',
  stat.S_IFIFO: 'FIFO',
  stat.S_IFSOCK: 'socket',
}

_ASIDE = re.compile(r'.+\.\d{8}-\d{6}\.\d{6}')


def check_writable(directory: str, setting: str = 'directory') -> None:
  """Raises SettingError unless a directory can be made and written to.

  Args:
    setting: Name of the setting, for the message.
  """
  existing = _nearest_existing(directory)
  if not os.path.isdir(existing):
    raise SettingError(
      setting,
      f'must be a folder, got {directory}, where {existing} is a file.',
    )
  if not os.access(existing, os.W_OK | os.X_OK):
    raise SettingError(
      setting,
      f'must be writable, got {directory}: no permission to write in '
      f'{existing}.',
    )


def check_folder(directory: str, name: str, writes: bool = True) -> None:
  """Raises SettingError unless a folder of a run can be made and written to.

  Args:
    name: Name of the folder in the directory.
    writes: Whether it must be writable.
  """
  path = os.path.join(directory, name)
  is_link = os.path.islink(path)
  if is_link or (os.path.lexists(path) and not os.path.isdir(path)):
    found = 'symbolic link' if is_link else 'file'
    raise SettingError(
      'directory',
      f'must be that of a run, or a new one, got {directory}, where {path} '
      f'must be a folder and is a {found}. Move that away, or choose another '
      'directory.',
    )
  is_folder = os.path.isdir(path)
  if writes and is_folder and not os.access(path, os.W_OK | os.X_OK):
    raise SettingError(
      'directory',
      f'must be writable, got {directory}: no permission to write in {path}.',
    )


def check_entries(directory: str) -> None:
  """Raises if a run's directory has entries of kinds that runs never write.

  Opening a FIFO would block forever, and a symbolic link would redirect writes.

  Args:
    directory: The run's directory, which may be a symbolic link, or missing.

  Raises:
    SettingError: Naming the first entry that is neither a regular file nor a
      folder.
  """
  check_kinds(directory, (*FOLDERS, LEARNERS, STORING, LOCK))
  # Not recursively: the folder of W&B in the logs has links.
  for folder in (*FOLDERS, LEARNERS):
    check_kinds(directory, _list(directory, folder))
  for path, _, _ in os.walk(os.path.join(directory, LOGS, printed.NODES)):
    folder = os.path.relpath(path, directory)
    check_kinds(directory, _list(directory, folder))


def check_kinds(
  directory: str, paths: Iterable[str], owner: str = 'a run'
) -> None:
  """Raises for entries that are neither regular files nor folders.

  Args:
    paths: Paths relative to the directory; missing ones are ignored.
    owner: Owner of the directory, for the message.

  Raises:
    SettingError: Naming the first such entry.
  """
  for path in paths:
    try:
      mode = os.lstat(os.path.join(directory, path)).st_mode
    except OSError:  # It is missing, or cannot be used anyway.
      continue
    kind = stat.S_IFMT(mode)
    if kind not in (stat.S_IFREG, stat.S_IFDIR):
      raise SettingError(
        'directory',
        f'must be that of {owner}, or a new one, got {directory}, where {path} '
        f'must be a regular file or a folder and is a '
        f'{_KINDS.get(kind, "device")}. Remove it, choose another directory, '
        'or start afresh.',
        fresh=True,
      )


def _list(directory: str, folder: str) -> list[str]:
  """Returns the sorted paths of a folder's entries, from the directory."""
  try:
    names = sorted(os.listdir(os.path.join(directory, folder)))
  except OSError:  # It is missing, or another run moves it.
    return []
  return [os.path.join(folder, name) for name in names]


def check_accepts_files(directory: str, setting: str) -> None:
  """Raises SettingError unless files can be created there; leaves none.

  Permissions alone do not show it: /proc grants them, but takes no files.

  Args:
    directory: Path of the folder; if missing, it must be possible to make it.
    setting: Name of the setting, for the message.
  """
  check_writable(directory, setting)
  existing = _nearest_existing(directory)
  try:
    os.rmdir(tempfile.mkdtemp(prefix='.new-', dir=existing))
  except OSError as error:
    raise SettingError(
      setting,
      f'must be writable, got {directory}: {error.strerror} ({existing}).',
    ) from error


def check_new(path: str, setting: str = 'path') -> None:
  """Raises SettingError unless a folder can be made, or is empty and writable.

  Args:
    setting: Name of the setting, for the message.
  """
  found = ''
  if not os.path.isdir(path):
    found = 'is a file' if os.path.lexists(path) else ''
  elif os.listdir(path):
    found = 'is not empty'
  if found:
    raise SettingError(
      setting, f'must be a new folder, or an empty one; {path} {found}.'
    )
  check_accepts_files(path, setting)


def describe_absence(directory: str) -> str:
  """Explains why a path is no run directory; '' if unknown."""
  if not os.path.isdir(directory):
    what = 'It is a file.' if os.path.lexists(directory) else 'It is not there.'
    return f' {what}'
  if os.path.basename(os.path.realpath(directory)) in FOLDERS:
    return ' Name the directory of the run, which that is a folder of.'
  return ''


def check_trained(directory: str, best: bool = False) -> None:
  """Raises SettingError unless a directory has a checkpoint; reads none.

  Args:
    best: Whether to require the policy of the best evaluation instead.
  """
  folder = BEST if best else CHECKPOINTS
  check_folder(directory, folder, writes=False)
  path = os.path.join(directory, folder)
  if checkpointing.Checkpointer(path).newest() is None:
    raise absence(directory, best)


def absence(directory: str, best: bool) -> SettingError:
  """Returns the error for a directory without a checkpoint.

  Its message explains what the path is instead. For arguments, see
  `check_trained`.
  """
  what, remedy = 'a checkpoint', 'Train first'
  if best:
    what, remedy = 'the policy of an evaluation', 'Train with evaluations first'
  return SettingError(
    'directory',
    f'must hold {what}, found none in {directory}.'
    f'{describe_absence(directory) or f" {remedy}."}',
  )


def set_aside(path: str) -> str:
  """Renames a file or folder, adding the time; returns its new path."""
  stamp = datetime.datetime.now().strftime('%Y%m%d-%H%M%S.%f')
  aside = f'{os.path.normpath(path)}.{stamp}'
  os.rename(path, aside)
  return aside


def is_aside(path: str) -> bool:
  """Whether a path is named as `set_aside` renames."""
  return bool(_ASIDE.fullmatch(os.path.basename(os.path.normpath(path))))


def _nearest_existing(path: str) -> str:
  """Returns a path, or its nearest parent that exists."""
  existing = os.path.abspath(path)
  while not os.path.exists(existing):
    existing = os.path.dirname(existing)
  return existing


def move_aside(directory: str) -> bool:
  """Renames a locked directory, unless it is empty; returns whether it did."""
  if os.listdir(directory) == [LOCK]:
    return False
  set_aside(directory)
  return True


@contextlib.contextmanager
def hold(directory: str) -> Iterator[None]:
  """Makes and locks a directory, so that no second run writes to it.

  The lock is released at the end of the block or of this process, however that
  ends, even if child processes survive, as an environment's may.

  Raises:
    SettingError: If another run holds it, or it cannot be made.
  """
  descriptor = _open_lock(directory)
  _held.add(descriptor)
  try:
    # The second attempt is for a concurrent `is_held`.
    is_locked = _lock(descriptor, directory)
    if not is_locked:
      time.sleep(_LOOK_SECONDS)
      is_locked = _lock(descriptor, directory)
    if not is_locked:
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


def is_held(directory: str) -> bool:
  """Whether a run holds a directory now; leaves no trace.

  Raises:
    OSError: If the lock cannot be read.
  """
  try:
    file = regular_files.open_inside(directory, LOCK)
  except FileNotFoundError:
    return False
  with file:
    try:
      # Shared with other calls of this, but not with the holder.
      fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
      return True
  return False


def _open_lock(directory: str) -> int:
  try:
    os.makedirs(directory, exist_ok=True)
    # Python lets no other program inherit it.
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW
    return os.open(os.path.join(directory, LOCK), flags, 0o666)
  except OSError as error:
    raise SettingError(
      'directory',
      f'must be writable, got {directory}: {error.strerror} '
      f'({error.filename}).',
    ) from error


def _lock(descriptor: int, directory: str) -> bool:
  """Returns whether the lock was free and still belongs to the directory."""
  try:
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    # Another run may have moved the directory aside in between.
    return os.path.samestat(
      os.fstat(descriptor), os.stat(os.path.join(directory, LOCK))
    )
  except OSError:
    return False


def _close_copies() -> None:
  """Closes the parent's lock descriptors in a forked process."""
  while _held:
    os.close(_held.pop())


# Descriptors of the locks that this process holds.
_held: set[int] = set()
os.register_at_fork(after_in_child=_close_copies)
