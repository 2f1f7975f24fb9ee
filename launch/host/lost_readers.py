"""Terminals that were closed, and pipes whose other end was.

What is printed there is an error, which must not become that of a command whose
work is done.
"""

import os
import select

_LOST = select.POLLERR | select.POLLHUP


def is_lost(descriptor: int) -> bool:
  """Returns whether nobody can read what is written to a descriptor."""
  poll = select.poll()
  poll.register(descriptor, 0)  # These two are told in any case.
  return any(event & _LOST for _, event in poll.poll(0))


def let_go() -> bool:
  """Lets what is printed to nobody vanish, from now on.

  Returns:
    Whether the standard output is printed to nobody.
  """
  lost = [descriptor for descriptor in (1, 2) if is_lost(descriptor)]
  null = os.open(os.devnull, os.O_WRONLY)
  for descriptor in lost:
    os.dup2(null, descriptor)
  os.close(null)
  return 1 in lost
