"""Live terminal dashboard of a run."""

import rich.console

from repertory.components.loggers import dashboard_view, figures, live_display
from repertory.components.loggers.status import Status

# Number of returns kept for the curve.
_MAX_RETURNS = 512


class Dashboard(live_display.LiveDisplay):
  """Display of a run: a panel, or lines of its progress."""

  def __init__(
    self, console: rich.console.Console | None = None, *, is_live: bool = True
  ):
    """See `live_display.LiveDisplay`."""
    super().__init__(console, is_live=is_live)
    # Evenly spaced: when there are too many, every second one is dropped, and
    # from then on only every second one is added.
    self._returns: list[float] = []
    self._stride, self._num_returns = 1, 0
    # Of the previous line.
    self._title = self._message = ''

  def update(self, status: Status) -> None:
    if status.mean_return is not None:
      if self._num_returns % self._stride == 0:
        self._returns = [*self._returns, status.mean_return]
      self._num_returns += 1
      if len(self._returns) > _MAX_RETURNS:
        self._returns = self._returns[::2]
        self._stride *= 2
    super().update(status)

  def _make_view(self, status: Status) -> rich.console.RenderableType:
    return dashboard_view.StatusView(status, self._returns)

  def _make_line(self, status: Status, is_last: bool) -> str:
    """Summarizes a status, with title and message if they have changed."""
    message = status.message if status.message != self._message else ''
    line = _describe(status, is_last)
    if message:
      line += f'; {" ".join(message.split())}'
    if status.title != self._title:
      line = f'{status.title}: {line}'
    self._title, self._message = status.title, status.message
    return line


def _describe(status: Status, is_last: bool) -> str:
  of_all = '' if status.max_steps is None else f' of {status.max_steps:,}'
  parts = [f'{status.steps:,}{of_all} steps']
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
  starts = dashboard_view.list_starts(status)
  if starts and not is_last:
    parts.append(f'starting: {"; ".join(starts)}')
  return ', '.join(parts)
