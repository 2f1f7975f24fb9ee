"""Progress notes on the terminal, and terminals or pipes that were closed.

Printing to a closed one is an error, which must not fail a command whose work
is done. Needs no TensorFlow.
"""

import contextlib
import os
import select
import sys
from collections.abc import Iterator

_CLEAR_LINE = '\r\x1b[K'


@contextlib.contextmanager
def saying(what: str, is_said: bool = True) -> Iterator[None]:
  """Shows a progress note while the block runs, if stderr is a terminal."""
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


def print_line(message: str) -> None:
  """Prints a message in a permanent line, replacing the current note."""
  with contextlib.suppress(OSError):
    clear = _CLEAR_LINE if _can_clear() else ''
    print(f'{clear}repertory: {message}', file=sys.stderr)


def _can_clear() -> bool:
  return sys.stderr.isatty() and os.environ.get('TERM', 'dumb') != 'dumb'


def is_lost(descriptor: int) -> bool:
  """Returns whether the reader of a descriptor is gone."""
  poll = select.poll()
  poll.register(descriptor, 0)  # These two are always reported.
  lost = select.POLLERR | select.POLLHUP
  return any(event & lost for _, event in poll.poll(0))


def let_go() -> bool:
  """Redirects standard output and error to /dev/null if their reader is gone.

  Returns whether the reader of the standard output is gone.
  """
  lost = [descriptor for descriptor in (1, 2) if is_lost(descriptor)]
  null = os.open(os.devnull, os.O_WRONLY)
  for descriptor in lost:
    os.dup2(null, descriptor)
  os.close(null)
  return 1 in lost
