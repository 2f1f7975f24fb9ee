"""What processes print, in files that stay short.

Libraries in C++ print as they please: Reverb 0.7.2 warns of items on their way,
of which many environments always have some, a hundred times a second.
"""

import contextlib
import fcntl
import glob
import os
import shutil

# Of the name of a file that has what was printed before.
_PREVIOUS = '.previous'

_MAX_BYTES = 2**24

# In the folder of a run's logs: what the libraries of the launching process
# print, and a folder for each group of nodes.
NATIVE = 'native.log'
NODES = 'nodes'


def shorten(log_directory: str) -> None:
  """Sets aside what has grown long; what was set aside before is forgotten.

  For that, who prints must append. A line that is printed at this moment may
  be lost.

  Args:
    log_directory: A run's; the files are those of `NATIVE` and `NODES`.
  """
  nodes = os.path.join(log_directory, NODES)
  for path in [os.path.join(log_directory, NATIVE), *_find(nodes)]:
    with contextlib.suppress(OSError):  # It may not be there yet.
      if os.path.getsize(path) > _MAX_BYTES:
        with contextlib.suppress(OSError):  # On a full disk, room is all.
          shutil.copyfile(path, path + _PREVIOUS)
        os.truncate(path, 0)


def set_aside(directory: str) -> None:
  """Renames what nodes printed there when they were launched the last time."""
  for path in _find(directory):
    os.replace(path, path + _PREVIOUS)


def append() -> None:
  """Lets this process append to what it prints to, whoever opened it."""
  for descriptor in (1, 2):
    flags = fcntl.fcntl(descriptor, fcntl.F_GETFL)
    fcntl.fcntl(descriptor, fcntl.F_SETFL, flags | os.O_APPEND)


def _find(directory: str) -> list[str]:
  paths = glob.glob(os.path.join(directory, '*', '*'))
  return [path for path in paths if not path.endswith(_PREVIOUS)]
