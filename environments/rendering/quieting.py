"""Suppression of warnings and stderr, by one thread at a time.

Both are global to the process. If two nodes in threads replaced them at once,
the last one to leave would restore the replacement of the other for good.
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
  """Ignores warnings of a category whose start matches a regular expression."""
  with _LOCK, warnings.catch_warnings():
    warnings.filterwarnings('ignore', message, category)
    yield


@contextlib.contextmanager
def discarded_stderr() -> Iterator[None]:
  """Discards Python's output to stderr while the block runs."""
  with _LOCK, contextlib.redirect_stderr(io.StringIO()):
    yield
