"""Directory of a run: folders, checks, and a lock for one run at a time."""

import contextlib
import datetime
import fcntl
import os
import re
import shutil
import stat
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

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
REPLAY = os.path.join(CHECKPOINTS, '.replay')  # Of the transport or its server.
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
  """Raises SettingError unless files can be created in a directory.

  It is neither made nor changed. Permissions alone do not show it: /proc grants
  them, but takes no files.
  """
  existing = os.path.abspath(directory)
  while not os.path.exists(existing):
    existing = os.path.dirname(existing)
  try:
    os.rmdir(tempfile.mkdtemp(prefix='.new-', dir=existing))
  except OSError as error:
    raise SettingError(
      setting,
      f'must be writable, got {directory}: {error.strerror} ({existing}).',
    ) from error


def check_folder(directory: str, name: str) -> None:
  """Raises SettingError for a file or link in place of a folder of a run."""
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


def check_run(directory: str) -> None:
  """Raises SettingError for entries of kinds that runs never write.

  Opening a FIFO would block, and a symbolic link would redirect writes. The
  directory itself may be a symbolic link, or missing.
  """
  for name in FOLDERS:
    check_folder(directory, name)
  check_kinds(directory, (*FOLDERS, LEARNERS, STORING, LOCK))
  # Not recursively: the folder of W&B in the logs has links.
  folders = [os.path.join(directory, name) for name in (*FOLDERS, LEARNERS)]
  walk = os.walk(os.path.join(directory, LOGS, printed.NODES))
  for folder in (*folders, *(path for path, _, _ in walk)):
    # It may be missing, or another run moves it.
    with contextlib.suppress(OSError):
      names = [
        os.path.join(folder, name) for name in sorted(os.listdir(folder))
      ]
      check_kinds(directory, [os.path.relpath(one, directory) for one in names])


def check_kinds(
  directory: str, paths: Iterable[str], owner: str = 'a run'
) -> None:
  """Raises SettingError for entries other than regular files and folders."""
  for path in paths:
    try:
      mode = os.lstat(os.path.join(directory, path)).st_mode
    except OSError:  # It is missing, or cannot be used anyway.
      continue
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
      raise SettingError(
        'directory',
        f'must be that of {owner}, or a new one, got {directory}, where {path} '
        'must be a regular file or a folder and is a '
        f'{_KINDS.get(stat.S_IFMT(mode), "device")}. Remove it, choose another '
        'directory, or start afresh.',
        fresh=True,
      )


def checkpoints_in(
  directory: str, best: bool = False
) -> checkpointing.Checkpointer:
  """Returns a run's checkpoints, or that of its best policy, for reading."""
  folder = BEST if best else CHECKPOINTS
  check_folder(directory, folder)
  found = checkpointing.Checkpointer(os.path.join(directory, folder))
  if (newest := found.newest()) is not None:
    check_folder(directory, os.path.relpath(newest, directory))
  return found


def load_checkpoint(
  directory: str, check_replay: bool = True
) -> checkpointing.Checkpoint | None:
  """Reads a run's newest checkpoint, if any."""
  return checkpoints_in(directory).load(check_replay)


def check_new(path: str, setting: str = 'path') -> None:
  """Raises SettingError unless a folder is empty, or can be made."""
  found = ''
  if not os.path.isdir(path):
    found = 'is a file' if os.path.lexists(path) else ''
  elif os.listdir(path):
    found = 'is not empty'
  if found:
    raise SettingError(
      setting, f'must be a new folder, or an empty one; {path} {found}.'
    )
  check_writable(path, setting)


def describe_absence(directory: str) -> str:
  """Explains why a path is no run directory; '' if unknown."""
  if not os.path.isdir(directory):
    what = 'It is a file.' if os.path.lexists(directory) else 'It is not there.'
    return f' {what}'
  *_, parent, name = os.path.realpath(directory).rsplit(os.sep, 2)
  if name in FOLDERS or (parent in (CHECKPOINTS, BEST) and name.isdigit()):
    return ' Name the directory of the run, which that is a folder of.'
  return ''


def check_trained(directory: str, best: bool = False) -> None:
  """Raises SettingError unless there is a checkpoint, or `best` policy."""
  if checkpoints_in(directory, best).newest() is None:
    raise absence(directory, best)


def absence(directory: str, best: bool) -> SettingError:
  """Returns the error for a directory without a checkpoint."""
  what, remedy = 'a checkpoint', 'Train first'
  if best:
    what, remedy = 'the policy of an evaluation', 'Train with evaluations first'
  return SettingError(
    'directory',
    f'must hold {what}, found none in {directory}.'
    f'{describe_absence(directory) or f" {remedy}."}',
  )


# Arrays of networks of another run, and a description of their origin.
Initial = tuple[Mapping[str, np.ndarray], Mapping[str, Any]]


def load_initial(directory: str) -> checkpointing.Checkpoint:
  """Reads the newest checkpoint of a run whose networks begin another.

  Raises:
    SettingError: If the run has no readable checkpoint.
  """
  path = os.path.join(directory, CHECKPOINTS)
  try:
    checkpoint = checkpointing.Checkpointer(path).load(check_replay=False)
  except checkpointing.CheckpointError as error:
    raise SettingError(
      'initial_from', f'must be readable: {error.problem}'
    ) from error
  if checkpoint is not None:
    return checkpoint
  if os.path.isdir(os.path.join(directory, BEST)):
    hint = ' The policy of the best evaluation alone will not do.'
  else:
    hint = describe_absence(directory)
  raise SettingError(
    'initial_from',
    f'must be the directory of a run with a checkpoint, found none in '
    f'{directory}.{hint}',
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


@contextlib.contextmanager
def hold(directory: str) -> Iterator[None]:
  """Makes and locks a directory, so that no second run writes to it.

  The lock is released at the end of the block or of this process, however that
  ends, even if child processes survive, as an environment's may.

  Raises:
    SettingError: If another run holds it, or it cannot be made.
  """
  try:
    os.makedirs(directory, exist_ok=True)
    # Python lets no other program inherit it.
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW
    descriptor = os.open(os.path.join(directory, LOCK), flags, 0o666)
  except OSError as error:
    raise SettingError(
      'directory',
      f'must be writable, got {directory}: {error.strerror} '
      f'({error.filename}).',
    ) from error
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


def clear(directory: str) -> str:
  """Removes leftovers of earlier runs; returns a note on what was moved.

  The directory is held, as in `save_initial`.
  """
  path = os.path.join(directory, CHECKPOINTS)
  checkpointing.Checkpointer(path).remove_unfinished()
  shutil.rmtree(os.path.join(directory, STORING), ignore_errors=True)
  logs, notes = os.path.join(directory, LOGS), []
  os.makedirs(logs, exist_ok=True)
  # A file named as the folder of node logs, or a folder named as a file.
  for name, is_folder in ((printed.NODES, True), (printed.NATIVE, False)):
    path = os.path.join(logs, name)
    if os.path.lexists(path) and os.path.isdir(path) != is_folder:
      notes.append(f'{path} was in the way and is now {set_aside(path)}')
  return '; '.join(notes)


def save_initial(directory: str, initial: Initial | None) -> None:
  """Saves the networks that a new run begins with, if they are another's."""
  folder = os.path.join(directory, INITIAL)
  shutil.rmtree(folder, ignore_errors=True)
  if initial is None:
    return
  try:
    checkpointing.Checkpointer(folder, 1).save(*initial)
  except OSError as error:
    raise SettingError(
      'directory', f'must have room for {folder}: {error}.'
    ) from error


def is_held(directory: str) -> bool:
  """Whether a run holds a directory now; leaves no trace."""
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
