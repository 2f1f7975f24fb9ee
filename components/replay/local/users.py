"""Threads that use a table."""

import threading
import weakref


class Users:
  """Detects that a single thread inserts and samples.

  That holds if no other thread used the table so far, and none was started
  since the table was created. So no other thread has access to the table,
  unless an older thread received a reference and has not used it yet: such a
  thread should create its own writers and batches.
  """

  def __init__(self):
    """Registers the calling thread, which creates the table, as first user."""
    self._first = threading.get_ident()
    self._has_others = False
    self._has_writer = False
    self._older = weakref.WeakSet(threading.enumerate())

  def note(self, writes: bool = False) -> None:
    """Records that the calling thread uses the table.

    Args:
      writes: Whether the thread opens a queue for items.
    """
    if threading.get_ident() != self._first:
      self._has_others = True
    self._has_writer |= writes

  def is_alone(self) -> bool:
    """Returns whether only the calling thread inserts and samples."""
    if self._has_others or not self._has_writer:
      return False
    if threading.get_ident() != self._first:
      return False
    return all(thread in self._older for thread in threading.enumerate())
