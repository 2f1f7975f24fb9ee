"""Status lines for output that is not a terminal."""

from repertory.components.loggers import (
  dashboard_lists,
  dashboard_style,
  figures,
)
from repertory.components.loggers.status import Status


def describe(status: Status, message: str = '', is_last: bool = False) -> str:
  """Summarizes a status in a line without its title.

  Args:
    message: Text to append.
    is_last: Whether the run is over.
  """
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
