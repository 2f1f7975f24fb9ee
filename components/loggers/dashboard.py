"""Live terminal dashboard of a run."""

import atexit
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import rich.console

from repertory.components.loggers import (
  dashboard_drawing,
  dashboard_streams,
  dashboard_thread,
  sparkline,
)
from repertory.components.loggers.status import Status, TableStatus

__all__ = ('Dashboard', 'Status', 'TableStatus')


class Dashboard:
  """Shows the latest status of a run until closed.

  On a terminal one panel is redrawn in place; prints through `sys.stdout` and
  `sys.stderr` appear above it, and the final state stays visible. If the output
  is a file or a pipe, a short line is written periodically, more often at
  first, and always one at the end.

  It draws in a thread of its own. A blocked terminal, because of Ctrl-S or a
  pipe that is not read, blocks nothing else: once it is unblocked, the newest
  status is drawn. Until then prints are buffered, up to a limit.

  Leaving the `with` block by an exception, or the interpreter's exit, closes
  the display. If the reader of standard output ends, as in `| head`, or the
  terminal is closed, the display ends and the run continues; the same holds if
  drawing fails, which is logged.
  """

  def __init__(
    self,
    console: rich.console.Console | None = None,
    period_seconds: float = 0.5,
    plain_period_seconds: float = 60.0,
    *,
    first_plain_period_seconds: float = 10.0,
    close_seconds: float = 5.0,
    is_live: bool = True,
    clock: Callable[[], float] = time.monotonic,
  ):
    """Prepares a display that is first drawn in `update`.

    Args:
      console: Console to draw on; by default the standard output.
      period_seconds: Minimum time between two drawings on a terminal; half a
        second is as often as numbers can be read.
      plain_period_seconds: Minimum time between two lines elsewhere.
      first_plain_period_seconds: The same until `plain_period_seconds` have
        passed once.
      close_seconds: Time limit of `close` for a blocked terminal.
      is_live: Whether to draw a panel on a terminal. Otherwise lines are
        written there, too, and the standard streams are not replaced.
      clock: Returns seconds.

    Raises:
      ValueError: If a time is negative.
    """
    for name, seconds in (
      ('period_seconds', period_seconds),
      ('plain_period_seconds', plain_period_seconds),
      ('first_plain_period_seconds', first_plain_period_seconds),
      ('close_seconds', close_seconds),
    ):
      if not seconds >= 0:
        raise ValueError(f'{name}: expected at least 0, found {seconds}')
    writer = self._lines = None
    if console is None:
      self._lines = dashboard_streams.LineBuffering(sys.stdout)
      writer = dashboard_streams.find_writer(sys.stdout)
      console = _make_console(writer or sys.stdout, is_live)
    drawing = dashboard_drawing.Drawing(console)
    self._is_interactive = drawing.is_interactive
    periods = period_seconds, period_seconds
    if not self._is_interactive:
      periods = plain_period_seconds, first_plain_period_seconds
    self._period, self._first_period = periods[0], min(periods)
    self._begun_at: float | None = None
    self._close_seconds = close_seconds
    self._clock = clock
    # Reentrant, because a signal handler may close what it interrupts.
    self._lock = threading.RLock()
    self._history = sparkline.History()
    self._status: Status | None = None
    self._drawn_at: float | None = None
    self._is_closed = False
    self._thread = dashboard_thread.DrawingThread(
      drawing, at_end=writer.close if writer else lambda: None
    )
    self._proxies: dict[str, dashboard_streams.Proxy] = {}

  def update(self, status: Status) -> None:
    """Sets a new status, which is drawn if the period has passed.

    Raises:
      ValueError: If the display is closed.
    """
    with self._lock:
      if self._is_closed:
        raise ValueError('update() after close()')
      is_first, self._status = self._status is None, status
      now = self._clock()
      if not self._is_due(now):
        self._thread.hold(status, self._history.values)
        return
      self._drawn_at = now
      if status.mean_return is not None:
        self._history.add(status.mean_return)
      self._thread.show(status, self._history.values)
      if is_first:
        self._begin()

  def close(self) -> None:
    """Draws the latest status and restores the standard streams.

    If the terminal is blocked for `close_seconds`, drawing is skipped.
    """
    with self._lock:
      if self._is_closed:
        return
      self._is_closed = True
    atexit.unregister(self.close)
    for name, proxy in self._proxies.items():
      proxy.flush()
      if getattr(sys, name) is proxy:
        setattr(sys, name, proxy.stream)
    if self._status is not None:
      self._thread.close(
        self._status, self._history.values, self._close_seconds
      )
    if self._lines is not None:
      self._lines.restore()

  def __enter__(self) -> 'Dashboard':
    return self

  def __exit__(self, *exc_info: Any) -> None:
    self.close()

  def _is_due(self, now: float) -> bool:
    """Returns whether it is time for another drawing."""
    if self._drawn_at is None or self._begun_at is None:
      self._begun_at = now
      return True
    is_first = now - self._begun_at <= self._period
    period = self._first_period if is_first else self._period
    return now - self._drawn_at >= period

  def _begin(self) -> None:
    """Redirects prints above the panel, and registers `close` at exit."""
    if not self._is_interactive:
      return
    atexit.register(self.close)
    for name in ('stdout', 'stderr'):
      proxy = dashboard_streams.Proxy(getattr(sys, name), self._thread)
      self._proxies[name] = proxy
      setattr(sys, name, proxy)


def _make_console(file: Any, is_live: bool) -> rich.console.Console:
  return _Console(file=file, force_interactive=None if is_live else False)


class _Console(rich.console.Console):
  """Raises an error for a broken pipe, where rich would exit."""

  def on_broken_pipe(self) -> None:
    raise
