"""Keeps back what modules of others have to say, in one thread at a time.

Warnings and stderr are the process's. If two nodes in threads changed them at
once, the last one to leave would restore what the first one had set, for good.
"""

import contextlib
import io
import threading
import warnings
from collections.abc import Iterator

_LOCK = threading.RLock()


@contextlib.contextmanager
def ignored_warnings(
  message: str = '', category: type[Warning] = Warning
) -> Iterator[None]:
  """Ignores warnings while the block runs.

  Args:
    message: A regular expression with which they begin.
    category: The kind that is ignored.
  """
  with _LOCK, warnings.catch_warnings():
    warnings.filterwarnings('ignore', message, category)
    yield


@contextlib.contextmanager
def discarded_stderr() -> Iterator[None]:
  """Discards what Python prints to stderr while the block runs."""
  with _LOCK, contextlib.redirect_stderr(io.StringIO()):
    yield
