"""Redirection of the output of C++ libraries and of `tf.print`."""

import contextlib
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
  python_stderr, original = sys.stderr, os.dup(2)
  with open(os.path.join(log_directory, printed.NATIVE), 'a') as file:
    os.dup2(file.fileno(), 2)
  with contextlib.suppress(AttributeError, OSError):  # It may be no file.
    if python_stderr.fileno() == 2:
      sys.stderr = os.fdopen(original, 'w', buffering=1, closefd=False)
  try:
    yield
  finally:
    sys.stderr.flush()
    os.dup2(original, 2)
    if sys.stderr is python_stderr:
      os.close(original)  # Otherwise logging handlers may hold it.
    sys.stderr = python_stderr
