"""Safe access to regular files in folders with untrusted contents.

A run's directory or a data set may come from other people. Opening a FIFO there
would wait forever, and a symbolic link could lead to any file of this machine,
which a report would then embed.
"""

import errno
import os
import stat
from typing import BinaryIO


def open_file(path: str) -> BinaryIO:
  """Opens a regular file for reading bytes; symbolic links are followed.

  Raises:
    OSError: If it is missing, not readable or not a regular file. A FIFO or
      device is refused at once, without waiting for a writer.
  """
  return _open(path, 0)


def open_inside(directory: str, name: str) -> BinaryIO:
  """Opens a regular file inside a directory for reading bytes.

  Args:
    directory: The directory; it may be a symbolic link, or in a linked folder.
    name: Relative path of the file. No part of it may be a symbolic link.

  Raises:
    OSError: As `open_file` does, or if there is a symbolic link, or the path
      leads out of the directory.
  """
  return _open(_resolve(directory, name), os.O_NOFOLLOW)


def list_inside(directory: str, name: str) -> list[str]:
  """Returns the names of the regular files in a folder of a directory, sorted.

  Symbolic links are left out.

  Args:
    directory: The directory; it may be a symbolic link, or in a linked folder.
    name: Relative path of the folder. No part of it may be a symbolic link.

  Raises:
    OSError: If it cannot be listed, or there is a symbolic link.
  """
  with os.scandir(_resolve(directory, name)) as entries:
    return sorted(
      entry.name for entry in entries if entry.is_file(follow_symlinks=False)
    )


def _resolve(directory: str, name: str) -> str:
  """Returns the path of an entry of a directory; refuses symbolic links."""
  path = os.path.join(directory, name)
  root = os.path.realpath(directory)
  expected = os.path.normpath(os.path.join(root, name))
  if os.path.commonpath([root, expected]) != root:
    raise OSError(errno.EACCES, f'it is not inside {directory}', path)
  if os.path.realpath(path) != expected:
    raise OSError(
      errno.ELOOP, 'it is a symbolic link, or in a linked folder', path
    )
  return path


def _open(path: str, flags: int) -> BinaryIO:
  descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | flags)
  try:
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISDIR(mode):
      raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if not stat.S_ISREG(mode):
      raise OSError(errno.EINVAL, 'it is not a regular file', path)
    return os.fdopen(descriptor, 'rb')
  except OSError:
    os.close(descriptor)
    raise
