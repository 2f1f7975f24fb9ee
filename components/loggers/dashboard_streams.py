"""Standard streams while a dashboard is drawn."""

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
  """Writes to a stream's descriptor without sharing its buffer or lock.

  If a terminal blocks the writing thread, other threads can still print, and
  the interpreter can exit.
  """

  def __init__(self, stream: io.TextIOWrapper):
    """Duplicates the descriptor of a stream.

    Raises:
      OSError: If it has none.
    """
    self._stream = stream
    self._descriptor = os.dup(stream.fileno())
    self.encoding = stream.encoding

  def write(self, text: str) -> int:
    """Writes all of a text.

    Raises:
      OSError: If that fails. If the terminal or the reader of the pipe has
        gone, the stream is redirected to the null device, so that other prints
        do not fail.
    """
    data = text.encode(self.encoding, 'replace')
    while data:
      try:
        data = data[os.write(self._descriptor, data) :]
      except BlockingIOError:  # Another process has made it non-blocking.
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
    """Does nothing: writes are not buffered."""

  def close(self) -> None:
    """Closes the descriptor; the stream stays open."""
    os.close(self._descriptor)

  def isatty(self) -> bool:
    return os.isatty(self._descriptor)

  def fileno(self) -> int:
    return self._descriptor


class LineBuffering:
  """Makes a stream line-buffered, as on a terminal.

  So its lines are in order with those of a `DescriptorWriter`.
  """

  def __init__(self, stream: Any):
    """Enables line buffering, unless the stream has no buffer of its own."""
    self._stream = stream if isinstance(stream, io.TextIOWrapper) else None
    self._before = self._stream is not None and self._stream.line_buffering
    self._set(True)

  def restore(self) -> None:
    """Restores the stream's buffering."""
    self._set(self._before)

  def _set(self, line_buffering: bool) -> None:
    if self._stream is not None and not self._stream.closed:
      # This flushes; the owner of the buffered text gets the error later.
      with contextlib.suppress(OSError):
        self._stream.reconfigure(line_buffering=line_buffering)


class Proxy:
  """Replaces a stream: the drawing thread prints its complete lines."""

  def __init__(self, stream: Any, thread: dashboard_thread.DrawingThread):
    """Starts with an empty line.

    Args:
      stream: The replaced stream, for other calls and as a fallback.
      thread: Thread that prints above its panel.
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
    """Prints an incomplete line."""
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
  """Returns a writer to the stream's descriptor, if it has one."""
  if not isinstance(stream, io.TextIOWrapper):
    return None
  try:
    return DescriptorWriter(stream)
  except OSError:
    return None
