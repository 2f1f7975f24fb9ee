"""A live display of a training run."""

import atexit
import dataclasses
import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import rich.console
import rich.live

from repertory.components.loggers import dashboard_view, figures, sparkline
from repertory.components.loggers.status import Status, TableStatus

__all__ = ('Dashboard', 'Status', 'TableStatus')


class Dashboard:
  """Shows the latest status of a run until closed.

  On a terminal one panel is drawn over and over in its place; what others print
  through `sys.stdout` and `sys.stderr` appears above it, and the final state is
  left standing. Where the output is a file or a pipe, a line of `key=value`
  figures is written from time to time, and always one at the end.

  It has no thread: it draws within `update`, as often as its period allows.
  The cursor is never hidden, so that there is nothing to restore even if the
  process is killed; leaving the `with` block by an exception, or the
  interpreter's exit, closes a display that was forgotten.

  If what reads the standard output ends, as in `| head`, the display is given
  up and the run goes on.
  """

  def __init__(
    self,
    console: rich.console.Console | None = None,
    period_seconds: float = 0.5,
    plain_period_seconds: float = 5.0,
    *,
    clock: Callable[[], float] = time.monotonic,
  ):
    """Prepares a display, of which nothing is seen before the first update.

    Args:
      console: Where to draw; by default the standard output.
      period_seconds: Least time between two drawings on a terminal; half a
        second is as often as figures can be read.
      plain_period_seconds: Least time between two lines elsewhere; longer, as
        they stay.
      clock: Gives seconds.

    Raises:
      ValueError: If a period is negative.
    """
    for name, period in (
      ('period_seconds', period_seconds),
      ('plain_period_seconds', plain_period_seconds),
    ):
      if not period >= 0:
        raise ValueError(f'{name}: expected at least 0, found {period}')
    self._console = console or _Console()
    # Neither a pipe nor a terminal that cannot move its cursor.
    self._interactive = self._console.is_interactive
    self._period = period_seconds if self._interactive else plain_period_seconds
    self._clock = clock
    # Reentrant, for a signal handler may close what it interrupts.
    self._lock = threading.RLock()
    self._live = None
    self._history = sparkline.History()
    self._status = None
    self._drawn_at = None
    self._closed = False

  def update(self, status: Status) -> None:
    """Takes a new status and draws it if the period has passed.

    Raises:
      ValueError: If the display is closed.
    """
    with self._lock:
      if self._closed:
        raise ValueError('update() after close()')
      self._status = status
      now = self._clock()
      if self._drawn_at is not None and now - self._drawn_at < self._period:
        return
      self._drawn_at = now
      if status.mean_return is not None:
        self._history.add(status.mean_return)
      if self._interactive:
        self._draw(status)
      else:
        self._print_line(status)

  def close(self) -> None:
    """Draws the latest status a last time and gives the terminal back."""
    with self._lock:
      if self._closed:
        return
      self._closed = True
      atexit.unregister(self.close)
      if self._status is None:
        return
      if not self._interactive:
        self._print_line(self._status)
      elif self._live is not None:
        self._live.update(self._make_view(self._status))
        self._live.stop()

  def __enter__(self) -> 'Dashboard':
    return self

  def __exit__(self, *exc_info: Any) -> None:
    self.close()

  def _make_view(self, status: Status) -> dashboard_view.StatusView:
    return dashboard_view.StatusView(status, self._history.values)

  def _draw(self, status: Status) -> None:
    if self._live is not None:
      self._live.update(self._make_view(status), refresh=True)
      return
    self._live = rich.live.Live(
      self._make_view(status), console=self._console, auto_refresh=False
    )
    atexit.register(self.close)
    self._live.start()
    self._console.show_cursor(True)
    self._live.refresh()

  def _print_line(self, status: Status) -> None:
    line = ' '.join(f'{key}={value}' for key, value in _list(status))
    self._console.print(
      f'{status.title}: {line}',
      soft_wrap=True,
      markup=False,
      highlight=False,
      emoji=False,
    )


class _Console(rich.console.Console):
  """Falls silent when what reads it has ended, where rich would exit."""

  def on_broken_pipe(self) -> None:
    self.quiet = True
    # What others print there later would fail, too.
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, self.file.fileno())
    os.close(null)


def _list(status: Status) -> Iterator[tuple[str, str]]:
  """Lists the known figures by name, in the order of interest."""
  for name in (
    'elapsed_seconds',
    'seconds_left',
    'steps',
    'max_steps',
    'steps_per_second',
    'episodes',
    'mean_return',
    'num_returns',
    'evaluation_return',
    'evaluation_steps',
    'learner_steps',
    'learner_steps_per_second',
    'samples_per_insert',
    'target_samples_per_insert',
    'variables_age_steps',
    'variables_age_seconds',
    'num_restarts',
  ):
    value = getattr(status, name)
    if value is not None:
      yield name, figures.exact(value)
  for table in status.tables:
    yield f'{table.name}.size', figures.exact(table.size)
    yield f'{table.name}.max_size', figures.exact(table.max_size)
    if table.blocked:
      yield f'{table.name}.blocked', table.blocked
  for server in status.inference:
    for field in dataclasses.fields(server)[1:]:
      value = figures.exact(getattr(server, field.name))
      yield f'{server.name}.{field.name}', value
  states = [state for _, state in status.nodes]
  for state in sorted(set(states)):
    yield f'nodes.{state}', str(states.count(state))
  if status.message:
    yield 'message', json.dumps(status.message, ensure_ascii=False)
