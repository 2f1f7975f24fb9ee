"""Real disk errors of the operating system."""

import contextlib
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterator

# Mounts of a child process are private and end with it.
_UNSHARE = ('unshare', '--mount')
_MOUNT = 'mount -t tmpfs -o size={size} tmpfs {folder}'


@contextlib.contextmanager
def file_size_limit(num_bytes: int) -> Iterator[None]:
  """Limits the size of this process's files; beyond it, EFBIG is raised."""
  limits = resource.getrlimit(resource.RLIMIT_FSIZE)
  resource.setrlimit(resource.RLIMIT_FSIZE, (num_bytes, limits[1]))
  try:
    yield
  finally:
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def can_mount(folder) -> bool:
  """Returns whether a child of this process may mount a file system."""
  if shutil.which('unshare') is None:
    return False
  mount = _MOUNT.format(size='1m', folder=folder)
  command = [*_UNSHARE, 'sh', '-c', mount]
  return subprocess.run(command, capture_output=True).returncode == 0


def run_on_small_disk(source: str, folder, size: str) -> str:
  """Runs Python code with a disk mounted at `folder`; returns its output."""
  mount = _MOUNT.format(size=size, folder=folder)
  done = subprocess.run(
    [
      *(*_UNSHARE, 'sh', '-c', f'{mount} && exec "$@"', 'sh'),
      *(sys.executable, '-c', source, str(folder)),
    ],
    capture_output=True,
    text=True,
    timeout=120,
    env={**os.environ, 'TF_CPP_MIN_LOG_LEVEL': '2'},
  )
  assert done.returncode == 0, done.stdout + done.stderr
  return done.stdout
