"""Live terminal dashboard of a run, drawn in a thread of its own."""

import collections
import contextlib
import dataclasses
import errno
import io
import logging
import os
import select
import sys
import threading
import time
from collections.abc import Iterable
from typing import Any

import rich.console
import rich.live
from rich import text

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

_log = logging.getLogger(__name__)


class Dashboard:
  """Shows the latest status of a run until closed.

  On a terminal one panel is redrawn in place; prints through `sys.stdout` and
  `sys.stderr` appear above it, and the final state stays visible. If the output
  is a file or a pipe, a short line is written periodically unless it would be
  the same again, more often at first, and always one at the end.

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
    self._file: io.TextIOWrapper | None = None  # To be closed.
    if console is None:
      self._file = _duplicate(sys.stdout)
      console = rich.console.Console(
        file=self._file or sys.stdout,
        # As at the start, so that writes to a closed terminal fail.
        force_terminal=self._file.isatty() if self._file else None,
        force_interactive=is_live and None,
      )
    self._console = console
    self._newest, self._set_at = Status(''), 0.0
    self._written, self._message = '', ''  # In the latest line.
    # Appended to without a lock, since a signal handler may print, too.
    self._prints: collections.deque[str] = collections.deque()
    self._num_lost = 0
    self._is_closing = threading.Event()
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
    self._newest, self._set_at = status, time.monotonic()
    if self._thread.ident is None and not self._is_closing.is_set():
      self._thread.start()
      for name in ('stdout', 'stderr') if self._console.is_interactive else ():
        proxy = self._proxies[name] = _Proxy(getattr(sys, name), self)
        setattr(sys, name, proxy)

  def print(self, lines: str) -> None:
    """Prints lines above the panel; the last line break is left out."""
    if len(self._prints) < _MAX_PRINTS:
      self._prints.append(lines)
    else:
      self._num_lost += 1

  def close(self) -> None:
    """Draws the latest status and restores the standard streams.

    If the terminal is blocked for 5 seconds, drawing is skipped.
    """
    if self._is_closing.is_set():
      return
    for name, proxy in self._proxies.items():
      proxy.flush()
      if getattr(sys, name) is proxy:
        setattr(sys, name, proxy.stream)
    self._is_closing.set()
    if self.is_drawing:
      self._thread.join(_CLOSE_SECONDS)
    elif self._file is not None:
      self._file.close()

  def __enter__(self):
    return self

  def __exit__(self, *exc_info: Any) -> None:
    self.close()

  def _run(self) -> None:
    try:
      # Raised if the reader of a pipe has ended; what others print is then
      # discarded.
      with contextlib.suppress(SystemExit):
        self._draw()
    finally:
      if self._file is not None:
        self._file.close()

  def _draw(self) -> None:
    try:
      if self._console.is_interactive:
        self._draw_panel()
      else:
        self._write_lines()
    except Exception as error:  # A failure must not end the run.
      if isinstance(error, OSError) and error.errno == errno.EIO:
        self._console.on_broken_pipe()  # The terminal was closed.
      _log.exception('The display stopped.')

  def _draw_panel(self) -> None:
    # Not rich's redirections: they block prints while the terminal is blocked.
    live = rich.live.Live(
      get_renderable=lambda: dashboard_view.draw(self._current()),
      console=self._console,
      auto_refresh=False,
      redirect_stdout=False,
      redirect_stderr=False,
    )
    live.start(refresh=True)
    # Never hidden, so there is nothing to restore if the process is killed.
    self._console.show_cursor(True)
    while not self._is_closing.wait(_PERIOD_SECONDS):
      self._print_queued()
      live.refresh()
    self._print_queued()
    live.stop()

  def _write_lines(self) -> None:
    started_at = time.monotonic()
    is_closing = False
    while not is_closing:
      self._write_line(is_last=False)
      is_first = time.monotonic() - started_at < _LINE_SECONDS
      is_closing = self._is_closing.wait(
        _FIRST_LINE_SECONDS if is_first else _LINE_SECONDS
      )
    self._write_line(is_last=True)

  def _write_line(self, is_last: bool) -> None:
    """Writes a line if it has changed, with the message if that is new."""
    status = self._current()
    line = dashboard_view.describe(status, is_last)
    is_new = status.message not in ('', self._message)
    if line == self._written and not is_new:
      return
    title = '' if self._written else f'{status.title}: '
    self._written, self._message = line, status.message
    if is_new:
      line += f'; {" ".join(status.message.split())}'
    self._console.print(text.Text(title + line), soft_wrap=True)

  def _current(self) -> Status:
    """Returns the newest status with the present elapsed time."""
    elapsed = self._newest.elapsed_seconds + time.monotonic() - self._set_at
    return dataclasses.replace(self._newest, elapsed_seconds=elapsed)

  def _print_queued(self) -> None:
    """Prints what others have printed since the latest drawing."""
    while self._prints:
      lines = text.Text.from_ansi(self._prints.popleft())
      self._console.print(lines, soft_wrap=True)
    if lost := self._num_lost:
      self._num_lost = 0
      self._console.print(
        f'(The terminal was too slow: {lost} prints are left out.)'
      )


class _WholeWrites(io.FileIO):
  """Writes all data, also if another process made the file non-blocking."""

  def write(self, data: Any) -> int:
    left = memoryview(data)
    while left:
      count: int | None = super().write(left)
      if count is None:
        select.select([], [self], [], 1.0)
      else:
        left = left[count:]
    return len(data)


def _duplicate(stream: Any) -> io.TextIOWrapper | None:
  """Returns a stream of the same descriptor with no buffer or lock to share.

  If a terminal blocks the thread that writes to it, other threads can still
  print, and the interpreter can exit. The given stream becomes line-buffered,
  so that its lines are in order. Returns None if it has no descriptor.
  """
  if not isinstance(stream, io.TextIOWrapper):
    return None
  try:
    raw: Any = _WholeWrites(os.dup(stream.fileno()), 'w')
  except OSError:
    return None
  stream.reconfigure(line_buffering=True)
  return io.TextIOWrapper(raw, stream.encoding, 'replace', write_through=True)


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
