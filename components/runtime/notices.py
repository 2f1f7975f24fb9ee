"""Import of TensorFlow without the notices of its libraries.

They are about oneDNN and logging. TensorFlow 2.21 writes them while it is
loaded, before it reads `TF_CPP_MIN_LOG_LEVEL`.
"""

import contextlib
import importlib.util
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from importlib import abc
from typing import Any

_NOTICE = re.compile(rb'I\d{4} |WARNING: All log messages before absl::')


def drop() -> None:
  """Drops notices when TensorFlow is imported, which may be never."""
  sys.meta_path.insert(0, _Finder())


@contextlib.contextmanager
def dropped(pattern: re.Pattern[bytes] = _NOTICE) -> Iterator[None]:
  """Writes what is written to file descriptor 2 at the end, without notices."""
  try:
    original = os.dup(2)
  except OSError:  # It is closed.
    yield
    return
  with tempfile.TemporaryFile() as file:
    os.dup2(file.fileno(), 2)
    try:
      yield
    finally:
      if sys.stderr is not None:
        sys.stderr.flush()
      os.dup2(original, 2)
      os.close(original)
      file.seek(0)
      for line in file:
        if not pattern.match(line):
          os.write(2, line)


class _Finder(abc.MetaPathFinder):
  """Finds TensorFlow once, and changes how it is executed."""

  def find_spec(self, fullname: str, path: Any, target: Any = None) -> Any:
    if fullname != 'tensorflow':
      return None
    sys.meta_path.remove(self)
    spec: Any = importlib.util.find_spec(fullname)
    if spec is None or spec.loader is None:
      return spec
    loader = spec.loader
    execute = loader.exec_module

    def exec_module(module: Any) -> None:
      del loader.exec_module
      with dropped():
        execute(module)

    loader.exec_module = exec_module
    return spec
