"""What is said on a terminal for as long as it lasts; needs no TensorFlow."""

import contextlib
import os
import sys
from collections.abc import Iterator

_CLEAR_LINE = '\r\x1b[K'


@contextlib.contextmanager
def saying(what: str, is_said: bool = True) -> Iterator[None]:
  """Says on the terminal what takes a while, until the block ends.

  Does nothing where lines would stay, as in a file.

  Args:
    is_said: Whether to do it at all.
  """
  if not (is_said and _can_clear()):
    yield
    return
  with contextlib.suppress(OSError):  # It may be gone.
    print(f'{what} ...', end='', file=sys.stderr, flush=True)
  try:
    yield
  finally:
    with contextlib.suppress(OSError):
      print(_CLEAR_LINE, end='', file=sys.stderr, flush=True)


def print_line(line: str) -> None:
  """Prints a line that stays, in place of what is being said."""
  with contextlib.suppress(OSError):
    print(f'{_CLEAR_LINE if _can_clear() else ""}{line}', file=sys.stderr)


def _can_clear() -> bool:
  return sys.stderr.isatty() and os.environ.get('TERM', 'dumb') != 'dumb'
