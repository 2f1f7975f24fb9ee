"""Live terminal dashboard of a run, drawn in a thread of its own."""

import contextlib
import dataclasses
import errno
import io
import logging
import os
import queue
import select
import sys
import threading
import time
from collections.abc import Iterable
from typing import Any

import rich.console
import rich.live
from rich import ansi, text

from repertory.components.loggers import dashboard_view
from repertory.components.loggers.status import Status

# Period of drawings on a terminal: as often as numbers can be read.
_PERIOD_SECONDS = 0.5
# Period of lines elsewhere, and while `_LINE_SECONDS` have not passed once.
_LINE_SECONDS, _FIRST_LINE_SECONDS = 60.0, 10.0
# Time limit of `close` for a blocked terminal.
_CLOSE_SECONDS = 5.0
# Number of prints buffered while the terminal is blocked.
_MAX_PRINTS = 1000
# The terminal has been closed, or the reader of the pipe has ended.
_GONE = (errno.EPIPE, errno.EIO)

_log = logging.getLogger(__name__)


class Dashboard:
  """Shows the latest status of a run until closed.

  On a terminal one panel is redrawn in place; prints through `sys.stdout` and
  `sys.stderr` appear above it, and the final state stays visible. If the output
  is a file or a pipe, a short line is written periodically, more often at
  first, and always one at the end.

  It draws in a thread of its own. A blocked terminal, because of Ctrl-S or a
  pipe that is not read, blocks nothing else: once it is unblocked, the newest
  status is drawn. Until then prints are buffered, up to a limit.

  If the reader of standard output ends, as in `| head`, or the terminal is
  closed, the display ends and the run continues; the same holds if drawing
  fails, which is logged.
  """

  def __init__(
    self, console: rich.console.Console | None = None, *, is_live: bool = True
  ):
    """Prepares a display that is first drawn in `update`.

    Args:
      console: Console to draw on; by default the standard output.
      is_live: Whether to draw a panel on a terminal. Otherwise lines are
        written there, too, and the standard streams are not replaced.
    """
    self._writer: _DescriptorWriter | None = None
    if console is None:
      if isinstance(sys.stdout, io.TextIOWrapper):
        with contextlib.suppress(OSError):  # It has no descriptor.
          self._writer = _DescriptorWriter(sys.stdout)
      file: Any = self._writer or sys.stdout
      console = _Console(file=file, force_interactive=is_live and None)
    self._console = console
    self._decoder = ansi.AnsiDecoder()
    self._shown = Status('')  # In the previous line.
    # Status, and the time at which it was set.
    self._newest = Status(''), 0.0
    # Prints; None ends a wait for them. Unlike other queues, this one allows
    # `put` in a signal handler that interrupts `put`.
    self._prints: queue.SimpleQueue[str | None] = queue.SimpleQueue()
    self._num_lost = 0
    self._is_closing = False
    self._thread = threading.Thread(
      target=self._run, name='display', daemon=True
    )
    self._proxies: dict[str, _Proxy] = {}

  @property
  def is_drawing(self) -> bool:
    """Whether the thread runs; also False in a forked process."""
    return self._thread.is_alive()

  def update(self, status: Status) -> None:
    """Sets a new status, which is drawn when it is due."""
    if self._is_closing:
      raise ValueError('update() after close()')
    self._newest = status, time.monotonic()
    if self._thread.ident is None:
      self._thread.start()
      for name in ('stdout', 'stderr') if self._console.is_interactive else ():
        proxy = self._proxies[name] = _Proxy(getattr(sys, name), self)
        setattr(sys, name, proxy)

  def print(self, lines: str) -> None:
    """Prints lines above the panel; the last line break is left out."""
    if self._prints.qsize() < _MAX_PRINTS:
      self._prints.put(lines)
    else:
      self._num_lost += 1

  def close(self) -> None:
    """Draws the latest status and restores the standard streams.

    If the terminal is blocked for 5 seconds, drawing is skipped.
    """
    if self._is_closing:
      return
    for name, proxy in self._proxies.items():
      proxy.flush()
      if getattr(sys, name) is proxy:
        setattr(sys, name, proxy.stream)
    self._is_closing = True
    self._prints.put(None)
    if self.is_drawing:
      self._thread.join(_CLOSE_SECONDS)
    elif self._writer is not None and self._thread.ident is None:
      self._writer.close()

  def __enter__(self):
    return self

  def __exit__(self, *exc_info: Any) -> None:
    self.close()

  def _run(self) -> None:
    try:
      if self._console.is_interactive:
        self._draw_panel()
      else:
        self._write_lines()
    except OSError as error:
      if error.errno not in _GONE:
        _log.warning('The display stopped: %s', error)
    except Exception:  # A failure must not end the run.
      _log.exception('The display stopped.')
    finally:
      if self._writer is not None:
        self._writer.close()

  def _draw_panel(self) -> None:
    # Not rich's redirections: they block prints while the terminal is blocked.
    live = rich.live.Live(
      get_renderable=lambda: dashboard_view.draw(self._current()),
      console=self._console,
      auto_refresh=False,
      redirect_stdout=False,
      redirect_stderr=False,
    )
    live.start()
    # Never hidden, so there is nothing to restore if the process is killed.
    self._console.show_cursor(True)
    while not self._is_closing:
      live.refresh()
      self._print_for(_PERIOD_SECONDS)
    self._print_for(0.0)
    live.stop()

  def _write_lines(self) -> None:
    started_at = time.monotonic()
    while not self._is_closing:
      self._write_line(is_last=False)
      is_first = time.monotonic() - started_at < _LINE_SECONDS
      self._print_for(_FIRST_LINE_SECONDS if is_first else _LINE_SECONDS)
    self._write_line(is_last=True)

  def _write_line(self, is_last: bool) -> None:
    """Summarizes the status, with title and message if they have changed."""
    status, shown = self._current(), self._shown
    line = dashboard_view.describe(status, is_last)
    if status.message not in ('', shown.message):
      line += f'; {" ".join(status.message.split())}'
    if status.title != shown.title:
      line = f'{status.title}: {line}'
    self._shown = status
    self._console.print(text.Text(line), soft_wrap=True)

  def _current(self) -> Status:
    """Returns the newest status with the present elapsed time."""
    status, set_at = self._newest
    elapsed = status.elapsed_seconds + time.monotonic() - set_at
    return dataclasses.replace(status, elapsed_seconds=elapsed)

  def _print_for(self, seconds: float) -> None:
    """Prints what is queued, until it is time to draw."""
    until = time.monotonic() + seconds
    while not (self._is_closing and self._prints.empty()):
      try:
        lines = self._prints.get(timeout=max(0.0, until - time.monotonic()))
      except queue.Empty:
        return
      if lines is not None:
        self._print_now(lines)
      if lost := self._num_lost:
        self._num_lost = 0
        self._print_now(
          f'(The terminal was too slow: {lost} prints are left out.)'
        )

  def _print_now(self, lines: str) -> None:
    decoded = map(self._decoder.decode_line, lines.split('\n'))
    self._console.print(text.Text('\n').join(decoded), soft_wrap=True)


class _Console(rich.console.Console):
  """Raises an error for a broken pipe, where rich would exit."""

  def on_broken_pipe(self) -> None:
    raise


class _DescriptorWriter:
  """Writes to a stream's descriptor without sharing its buffer or lock.

  If a terminal blocks the writing thread, other threads can still print, and
  the interpreter can exit. Until it is closed the stream is line-buffered, so
  that its lines are in order with those written here.
  """

  def __init__(self, stream: io.TextIOWrapper):
    """Duplicates the descriptor; raises OSError if the stream has none."""
    self._stream = stream
    self._descriptor = os.dup(stream.fileno())
    self._was_line_buffered = stream.line_buffering
    stream.reconfigure(line_buffering=True)
    self.encoding = stream.encoding
    # As at the start, so that writes to a closed terminal fail.
    self._is_terminal = stream.isatty()

  def write(self, text: str) -> int:
    """Writes all of a text."""
    data = text.encode(self.encoding, 'replace')
    while data:
      try:
        data = data[os.write(self._descriptor, data) :]
      except BlockingIOError:  # Another process has made it non-blocking.
        select.select([], [self._descriptor], [], 1.0)
      except OSError as error:
        if error.errno in _GONE:
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
    if not (self._was_line_buffered or self._stream.closed):
      self._stream.reconfigure(line_buffering=False)

  def isatty(self) -> bool:
    return self._is_terminal

  def fileno(self) -> int:
    return self._descriptor


class _Proxy:
  """Replaces a stream: a display prints its complete lines."""

  def __init__(self, stream: Any, display: Dashboard):
    """Starts with an empty line; the stream is the fallback."""
    self.stream = stream
    self._display = display
    self._begun = ''
    self._lock = threading.RLock()  # A signal handler may print, too.

  def __getattr__(self, name: str) -> Any:
    return getattr(self.stream, name)

  def write(self, text: str) -> int:
    with self._lock:
      lines, newline, self._begun = (self._begun + text).rpartition('\n')
      if not self._display.is_drawing:
        self.stream.write(lines + newline + self._begun)
        self._begun = ''
      elif newline:
        self._display.print(lines)
    return len(text)

  def writelines(self, lines: Iterable[str]) -> None:
    for line in lines:
      self.write(line)

  def flush(self) -> None:
    """Prints an incomplete line."""
    if self._begun:
      self.write('\n' if self._display.is_drawing else '')
    if not self._display.is_drawing:
      self.stream.flush()
