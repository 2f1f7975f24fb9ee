"""Redirection of the output of C++ libraries and of `tf.print`."""

import contextlib
import io
import os
import sys
import threading
from collections.abc import Iterator

from tensorflow.python.ops import logging_ops

from repertory.launch.platform import printed


@contextlib.contextmanager
def redirected(log_directory: str) -> Iterator[None]:
  """Appends file descriptor 2 to a log; Python's own stderr stays as it is.

  Reverb and TensorFlow write there directly, which would corrupt a live
  display. `tf.print` is for the user: from now on it writes to `sys.stdout`, as
  in notebooks.
  """
  # The descriptor belongs to the process, so only one thread may redirect it.
  if threading.current_thread() is not threading.main_thread():
    yield
    return
  logging_ops.enable_interactive_logging()
  sys.stderr.flush()
  original = os.dup(2)
  python_stderr = sys.stderr
  replaced = _writes_to_descriptor_2(python_stderr)
  with open(os.path.join(log_directory, printed.NATIVE), 'a') as file:
    os.dup2(file.fileno(), 2)
  if replaced:
    sys.stderr = os.fdopen(original, 'w', buffering=1, closefd=False)
  try:
    yield
  finally:
    if replaced:
      sys.stderr.flush()  # Not closed: logging handlers may hold it.
    sys.stderr = python_stderr
    os.dup2(original, 2)
    if not replaced:
      os.close(original)


def _writes_to_descriptor_2(stream) -> bool:
  try:
    return stream.fileno() == 2
  except (AttributeError, OSError, io.UnsupportedOperation):
    return False
