"""Statuses on a console: one panel in its place, or lines of figures."""

import dataclasses
import json
from collections.abc import Iterator, Sequence

import rich.console
import rich.live
from rich import ansi, text

from repertory.components.loggers import dashboard_view, figures
from repertory.components.loggers.status import Status


class Drawing:
  """Draws in the thread that calls, which waits for a slow terminal.

  The cursor is never hidden, so that there is nothing to restore even if the
  process is killed.
  """

  def __init__(self, console: rich.console.Console):
    """Draws nothing yet."""
    self._console = console
    self._live: rich.live.Live | None = None
    self._decoder = ansi.AnsiDecoder()

  @property
  def is_interactive(self) -> bool:
    """Whether the console is neither a pipe nor unable to move its cursor."""
    return self._console.is_interactive

  def draw(self, status: Status, returns: Sequence[float] = ()) -> None:
    """Draws a status in place of the one before, or as one more line.

    Args:
      status: The run.
      returns: How the mean return went up to now, for the curve.
    """
    if not self.is_interactive:
      self._print_line(status)
      return
    view = dashboard_view.StatusView(status, returns)
    if self._live is not None:
      self._live.update(view, refresh=True)
      return
    # Not rich's redirections: they let who prints wait for the terminal.
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
    """Prints lines of others, above the panel."""
    decoded = [self._decoder.decode_line(line) for line in lines]
    self._console.print(text.Text('\n').join(decoded))

  def finish(self, status: Status, returns: Sequence[float] = ()) -> None:
    """Draws the last status, which is left standing; see `draw`."""
    if self._live is None:
      self.draw(status, returns)
    else:
      self._live.update(dashboard_view.StatusView(status, returns))
    if self._live is not None:
      self._live.stop()

  def _print_line(self, status: Status) -> None:
    line = ' '.join(f'{key}={value}' for key, value in _list(status))
    self._console.print(
      f'{status.title}: {line}',
      soft_wrap=True,
      markup=False,
      highlight=False,
      emoji=False,
    )


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
    'best_return',
    'best_steps',
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
  hosts = [host for _, host in status.hosts]
  for host in sorted(set(hosts)):
    yield f'hosts.{host}', str(hosts.count(host))
  if status.message:
    yield 'message', json.dumps(status.message, ensure_ascii=False)
