"""Transient progress notes on the terminal; needs no TensorFlow."""

import contextlib
import os
import sys
from collections.abc import Iterator

_CLEAR_LINE = '\r\x1b[K'


@contextlib.contextmanager
def saying(what: str, is_said: bool = True) -> Iterator[None]:
  """Shows a progress note on the terminal while the block runs.

  Shows nothing if the output is not a terminal.

  Args:
    what: Text of the note.
    is_said: Whether to show it.
  """
  if not (is_said and _can_clear()):
    yield
    return
  with contextlib.suppress(OSError):  # The terminal may be closed.
    print(f'{what} ...', end='', file=sys.stderr, flush=True)
  try:
    yield
  finally:
    with contextlib.suppress(OSError):
      print(_CLEAR_LINE, end='', file=sys.stderr, flush=True)


def print_line(line: str) -> None:
  """Prints a permanent line, replacing the current note."""
  with contextlib.suppress(OSError):
    print(f'{_CLEAR_LINE if _can_clear() else ""}{line}', file=sys.stderr)


def _can_clear() -> bool:
  return sys.stderr.isatty() and os.environ.get('TERM', 'dumb') != 'dumb'
