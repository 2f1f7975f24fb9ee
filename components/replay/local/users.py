"""Which threads use a table."""

import threading
import weakref


class Users:
  """Knows when one thread alone can put items into a table and sample them.

  It is the only one who did so far, and no other has been started since the
  table was made. So nobody else has an end of the table, unless a thread that
  is older than the table was given one and has not used it yet: let such a one
  make its ends itself.
  """

  def __init__(self):
    """Takes the calling thread, who makes the table, for a user."""
    self._first = threading.get_ident()
    self._has_others = False
    self._has_writer = False
    self._older = weakref.WeakSet(threading.enumerate())

  def note(self, writes: bool = False) -> None:
    """Takes note that the calling thread uses the table.

    Args:
      writes: Whether it opens a line for items.
    """
    if threading.get_ident() != self._first:
      self._has_others = True
    self._has_writer |= writes

  def is_alone(self) -> bool:
    """Returns whether the calling thread alone puts items and samples them."""
    if self._has_others or not self._has_writer:
      return False
    if threading.get_ident() != self._first:
      return False
    return all(thread in self._older for thread in threading.enumerate())
