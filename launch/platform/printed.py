"""Rotation of the output files of processes.

C++ libraries may print a lot: Reverb 0.7.2 warns of pending items, which runs
with many environments always have, a hundred times a second.
"""

import contextlib
import glob
import os
import shutil

# Suffix of rotated files.
_PREVIOUS = '.previous'
_MAX_BYTES = 2**24

# In a run's log folder: native output of the launching process, and the folder
# with the output of nodes.
NATIVE = 'native.log'
NODES = 'nodes'


def shorten(log_directory: str) -> None:
  """Rotates output files above the size limit in a run's log folder.

  Processes must write in append mode. A line printed meanwhile may be lost.
  """
  nodes = os.path.join(log_directory, NODES)
  for path in [os.path.join(log_directory, NATIVE), *_find(nodes)]:
    with contextlib.suppress(OSError):  # It may not exist yet.
      if os.path.getsize(path) > _MAX_BYTES:
        with contextlib.suppress(OSError):  # The disk may be full.
          shutil.copyfile(path, path + _PREVIOUS)
        os.truncate(path, 0)


def set_aside(directory: str) -> None:
  """Renames the output files of the previous launch."""
  for path in _find(directory):
    os.replace(path, path + _PREVIOUS)


def _find(directory: str) -> list[str]:
  paths = glob.glob(os.path.join(directory, '*', '*'))
  return [path for path in paths if not path.endswith(_PREVIOUS)]
