"""What C++ libraries print, kept out of the display."""

import contextlib
import io
import os
import sys
from collections.abc import Iterator


@contextlib.contextmanager
def redirected(path: str) -> Iterator[None]:
  """Sends file descriptor 2 to a file; Python's own stderr stays as it is.

  Reverb and TensorFlow write there directly, which would tear up a live
  display.

  Args:
    path: Appended to.
  """
  sys.stderr.flush()
  original = os.dup(2)
  python_stderr = sys.stderr
  replaced = _writes_to_descriptor_2(python_stderr)
  with open(path, 'a') as file:
    os.dup2(file.fileno(), 2)
  if replaced:
    sys.stderr = os.fdopen(original, 'w', buffering=1, closefd=False)
  try:
    yield
  finally:
    if replaced:
      sys.stderr.close()
    sys.stderr = python_stderr
    os.dup2(original, 2)
    os.close(original)


def _writes_to_descriptor_2(stream) -> bool:
  try:
    return stream.fileno() == 2
  except (AttributeError, OSError, io.UnsupportedOperation):
    return False
