"""Cache of programs that XLA has compiled for CPUs, by TensorFlow 2.21.

It is in the user's cache folder, in a folder for each kind of machine and
version, since the programs are machine code.
"""

import contextlib
import hashlib
import os
import pathlib
import re
import shutil
import tempfile
import threading
from collections.abc import Iterator, Sequence

from repertory.components.runtime import notices, versions

# Environment variable with the folder; empty for no cache.
VARIABLE = 'REPERTORY_XLA_CACHE'
_FLAGS = 'TF_XLA_FLAGS'
_PREFIX = '--tf_xla_persistent_cache'

_MAX_BYTES = 2**29
# Size of the largest programs, several times.
_MIN_BYTES, _MIN_FREE_BYTES = 2**22, 2**28
_CPU = re.compile(r'^(?:model name|flags|Features)\s*:.*$', re.MULTILINE)
# TensorFlow tries a format that these files do not have, and logs parts of the
# compiler's options that are no features of CPUs.
_NOTICES = re.compile(
  rb'E\d{4} .*(?:parsing text-format|Loading XLA:CPU AOT result)'
)


_lock = threading.Lock()


def enable(xla_flags: Sequence[str]) -> None:
  """Makes TensorFlow use the cache; called before its first operation.

  Args:
    xla_flags: Flags that may be added to the variable `XLA_FLAGS`.
  """
  flags = os.environ.get(_FLAGS, '')
  if not versions.has_xla_cache() or _PREFIX in flags:
    return
  with contextlib.suppress(OSError, RuntimeError):  # No home, or no space.
    folder = _find(xla_flags)
    if folder and '"' not in str(folder):
      _prepare(folder)
      os.environ[_FLAGS] = (
        f'{flags} {_PREFIX}_directory="{folder}" {_PREFIX}_device_types=CPU'
      ).strip()


def _find(flags: Sequence[str]) -> pathlib.Path | None:
  """Returns the folder for this machine, or None for no cache."""
  folder = os.environ.get(VARIABLE)
  if folder is None:
    caches = os.environ.get('XDG_CACHE_HOME') or pathlib.Path.home() / '.cache'
    folder = pathlib.Path(caches, 'repertory', 'xla')
  elif not folder:
    return None
  parts = [
    *flags,
    str(versions.installed()['TensorFlow']),
    str(versions.num_cpus()),
    os.environ.get('XLA_FLAGS', ''),
    *sorted(set(_CPU.findall(pathlib.Path('/proc/cpuinfo').read_text()))),
  ]
  key = hashlib.sha256('\n'.join(parts).encode()).hexdigest()[:16]
  return pathlib.Path(folder, key).absolute()


def _prepare(folder: pathlib.Path) -> None:
  """Creates the folder, limits its size, and deletes damaged files.

  With those, TensorFlow would fail.

  Raises:
    OSError: If it cannot be used, or may be written by other users.
  """
  folder.mkdir(mode=0o700, parents=True, exist_ok=True)
  status = folder.stat()
  if status.st_uid != os.getuid() or status.st_mode & 0o022:
    raise PermissionError(f'{folder} can be written by other users.')
  with tempfile.TemporaryFile(dir=folder) as file:  # Quotas may be lower.
    file.write(bytes(_MIN_BYTES))
  if shutil.disk_usage(folder).free < _MIN_FREE_BYTES:
    raise OSError(f'{folder} has little space.')
  files = []
  for path in folder.iterdir():
    with contextlib.suppress(FileNotFoundError):  # Others delete and rename.
      files.append((path, path.stat()))
  files.sort(key=lambda file: file[1].st_mtime)
  size = sum(file.st_size for _, file in files)
  limit = _MAX_BYTES if size <= _MAX_BYTES else _MAX_BYTES / 2
  for path, file in files:  # The oldest first.
    if size > limit or (path.suffix == '.pb' and not _is_whole(path)):
      path.unlink(missing_ok=True)
      size -= file.st_size


def _is_whole(path: pathlib.Path) -> bool:
  """Returns whether the fields of a protocol buffer end with its file.

  All are strings or messages, each a tag, its size and its content.
  """
  with contextlib.suppress(ValueError, IndexError), open(path, 'rb') as file:
    size = os.path.getsize(path)
    while size > 0 and file.tell() < size:
      if file.read(1)[0] & 7 != 2:  # Wire type: length-delimited.
        return False
      length = shift = 0
      while (byte := file.read(1)[0]) >= 128:
        length |= (byte & 127) << shift
        shift += 7
      file.seek(length | byte << shift, os.SEEK_CUR)
    return 0 < size == file.tell()
  return False


@contextlib.contextmanager
def quiet() -> Iterator[None]:
  """Keeps what TensorFlow logs about the cache from terminals.

  Logs of other threads appear at the end. For one thread at a time; others do
  not wait.
  """
  is_enabled = _PREFIX in os.environ.get(_FLAGS, '')
  if not is_enabled or not os.isatty(2) or not _lock.acquire(blocking=False):
    yield
    return
  try:
    with notices.dropped(_NOTICES):
      yield
  finally:
    _lock.release()
