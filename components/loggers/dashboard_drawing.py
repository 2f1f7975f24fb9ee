"""Drawing on a console: one panel in place, or short lines."""

from collections.abc import Sequence

import rich.console
import rich.live
from rich import ansi, text

from repertory.components.loggers import (
  dashboard_lists,
  dashboard_style,
  dashboard_view,
  figures,
)
from repertory.components.loggers.status import Status


class Drawing:
  """Draws in the calling thread, which a slow terminal may block.

  The cursor is never hidden, so there is nothing to restore even if the process
  is killed.
  """

  def __init__(self, console: rich.console.Console):
    """Draws nothing yet."""
    self._console = console
    self._live: rich.live.Live | None = None
    self._decoder = ansi.AnsiDecoder()
    # Of the previous line.
    self._title = self._message = ''

  @property
  def is_interactive(self) -> bool:
    """Whether the console is a terminal that can move its cursor."""
    return self._console.is_interactive

  def draw(self, status: Status, returns: Sequence[float] = ()) -> None:
    """Draws a status in place of the previous one, or as another line.

    Args:
      status: Status of the run.
      returns: Mean returns so far, for the curve.
    """
    if not self.is_interactive:
      self._print_line(status)
      return
    view = self._make_view(status, returns)
    if self._live is not None:
      self._live.update(view, refresh=True)
      return
    # Not rich's redirections: they block prints while the terminal is blocked.
    self._live = rich.live.Live(
      view,
      console=self._console,
      auto_refresh=False,
      redirect_stdout=False,
      redirect_stderr=False,
    )
    self._live.start()
    self._console.show_cursor(True)
    self._live.refresh()

  def print(self, lines: Sequence[str]) -> None:
    """Prints text lines above the panel."""
    decoded = [self._decoder.decode_line(line) for line in lines]
    self._console.print(text.Text('\n').join(decoded))

  def finish(self, status: Status, returns: Sequence[float] = ()) -> None:
    """Draws the last status, which stays visible; see `draw`."""
    if not self.is_interactive:
      self._print_line(status, is_last=True)
    elif self._live is None:
      self.draw(status, returns)
    else:
      self._live.update(self._make_view(status, returns))
    if self._live is not None:
      self._live.stop()

  def _make_view(
    self, status: Status, returns: Sequence[float]
  ) -> rich.console.RenderableType:
    """Returns the panel for a terminal."""
    return dashboard_view.StatusView(status, returns)

  def _print_line(self, status: Status, is_last: bool = False) -> None:
    """Prints a line, with title and message only if they have changed."""
    message = status.message if status.message != self._message else ''
    line = _describe(status, message, is_last)
    if status.title != self._title:
      line = f'{status.title}: {line}'
    self._title, self._message = status.title, status.message
    self._console.print(
      line, soft_wrap=True, markup=False, highlight=False, emoji=False
    )


def _describe(status: Status, message: str, is_last: bool) -> str:
  """Summarizes a status in a line without its title."""
  parts = [_describe_steps(status)]
  if status.mean_return is not None:
    parts.append(f'return {status.mean_return:.4g}')
  if status.evaluation_return is not None:
    parts.append(f'evaluation {status.evaluation_return:.4g}')
  if is_last:
    parts.append(f'after {figures.duration(status.elapsed_seconds)}')
  elif status.steps_per_second:
    parts.append(f'{figures.grouped(status.steps_per_second)} steps/s')
  if status.seconds_left is not None and not is_last:
    parts.append(f'{figures.duration(status.seconds_left)} left')
  if status.num_restarts:
    plural = 's' if status.num_restarts > 1 else ''
    parts.append(f'{status.num_restarts} restart{plural}')
  starts = dashboard_lists.list_starts(status, dashboard_style.ASCII.times)
  if starts and not is_last:
    parts.append(f'starting: {"; ".join(starts)}')
  line = ', '.join(parts)
  return f'{line}; {" ".join(message.split())}' if message else line


def _describe_steps(status: Status) -> str:
  if status.max_steps is None:
    return f'{status.steps:,} steps'
  return f'{status.steps:,} of {status.max_steps:,} steps'
