"""The standard streams while a dashboard is drawn."""

import contextlib
import io
import os
import select
import threading
from collections.abc import Iterable
from typing import Any

from repertory.components.loggers import dashboard_thread

_POLL_MILLISECONDS = 1000


class DescriptorWriter:
  """Writes to where a stream does, but shares neither buffer nor lock with it.

  A thread that waits in here for its terminal does so alone: others can go on
  to print, and the interpreter can end.
  """

  def __init__(self, stream: io.TextIOWrapper):
    """Takes a stream that has a descriptor.

    Raises:
      OSError: If it has none.
    """
    self._stream = stream
    self._descriptor = os.dup(stream.fileno())
    self.encoding = stream.encoding

  def write(self, text: str) -> int:
    """Writes all of a text.

    Raises:
      OSError: If that is not possible. If the terminal or what reads the pipe
        has gone, what others print there is lost from then on, where it would
        be an error.
    """
    data = text.encode(self.encoding, 'replace')
    while data:
      try:
        data = data[os.write(self._descriptor, data) :]
      except BlockingIOError:  # Another process has told it not to wait.
        poll = select.poll()
        poll.register(self._descriptor, select.POLLOUT)
        poll.poll(_POLL_MILLISECONDS)
      except OSError as error:
        if error.errno in dashboard_thread.GONE:
          null = os.open(os.devnull, os.O_WRONLY)
          os.dup2(null, self._stream.fileno())
          os.close(null)
        raise
    return len(text)

  def flush(self) -> None:
    """Does nothing: nothing is held back."""

  def close(self) -> None:
    """Closes the descriptor; the stream stays open."""
    os.close(self._descriptor)

  def isatty(self) -> bool:
    return os.isatty(self._descriptor)

  def fileno(self) -> int:
    return self._descriptor


class LineBuffering:
  """Lets a stream write whole lines at once, as on a terminal.

  So they are in their places among those of a `DescriptorWriter`.
  """

  def __init__(self, stream: Any):
    """Begins with it; does nothing to a stream without a buffer of its own."""
    self._stream = stream if isinstance(stream, io.TextIOWrapper) else None
    self._before = self._stream is not None and self._stream.line_buffering
    self._set(True)

  def restore(self) -> None:
    """Lets the stream do as before."""
    self._set(self._before)

  def _set(self, line_buffering: bool) -> None:
    if self._stream is not None and not self._stream.closed:
      # It writes what it holds; whoever has written that will hear of it.
      with contextlib.suppress(OSError):
        self._stream.reconfigure(line_buffering=line_buffering)


class Proxy:
  """Stands in for a stream: whole lines are handed over to be printed."""

  def __init__(self, stream: Any, thread: dashboard_thread.DrawingThread):
    """Prints nothing.

    Args:
      stream: Takes what the thread does not take, and all other calls.
      thread: Prints above its panel.
    """
    self.stream = stream
    self._thread = thread
    self._begun = ''
    self._lock = threading.RLock()

  def __getattr__(self, name: str) -> Any:
    return getattr(self.stream, name)

  def write(self, text: str) -> int:
    if not self._thread.takes_text:
      self.stream.write(self._take_begun() + text)
      return len(text)
    with self._lock:
      lines, newline, rest = (self._take_begun() + text).rpartition('\n')
      self._begun = rest
      if newline:
        self._thread.print(lines)
    return len(text)

  def writelines(self, lines: Iterable[str]) -> None:
    for line in lines:
      self.write(line)

  def flush(self) -> None:
    """Ends a line that was begun."""
    if not self._thread.takes_text:
      self.stream.write(self._take_begun())
      self.stream.flush()
      return
    with self._lock:
      if begun := self._take_begun():
        self._thread.print(begun)

  def _take_begun(self) -> str:
    begun, self._begun = self._begun, ''
    return begun


def find_writer(stream: Any) -> DescriptorWriter | None:
  """Returns a writer to where a stream writes, if that has a descriptor."""
  if not isinstance(stream, io.TextIOWrapper):
    return None
  try:
    return DescriptorWriter(stream)
  except OSError:
    return None
