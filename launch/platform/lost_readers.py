"""Handling of closed terminals and broken pipes.

Printing there is an error, which must not fail a command whose work is done.
"""

import os
import select

_LOST = select.POLLERR | select.POLLHUP


def is_lost(descriptor: int) -> bool:
  """Returns whether the reader of a descriptor is gone."""
  poll = select.poll()
  poll.register(descriptor, 0)  # These two are always reported.
  return any(event & _LOST for _, event in poll.poll(0))


def let_go() -> bool:
  """Redirects standard output and error to /dev/null if their reader is gone.

  Returns:
    Whether the reader of the standard output is gone.
  """
  lost = [descriptor for descriptor in (1, 2) if is_lost(descriptor)]
  null = os.open(os.devnull, os.O_WRONLY)
  for descriptor in lost:
    os.dup2(null, descriptor)
  os.close(null)
  return 1 in lost
