"""Explanations of waits on a table: log messages and errors."""

import logging
from collections.abc import Callable
from typing import Any, TypeAlias

from repertory.components.config import settings
from repertory.components.replay import limiter, server, tables

# Status of a table, or the reason why it is unknown.
Seen: TypeAlias = server.TableInfo | str

# Timeout of a status query during a wait.
_LOOK_SECONDS = 2

_ALONE = (
  'This thread would wait forever: no other thread uses the table, so none can'
)

_log = logging.getLogger(__name__)


class DeadlockError(RuntimeError):
  """A thread waits for a table that only this thread could change."""


def before_samples(
  table: tables.TableSpec, seen: Seen, num_samples: int
) -> str:
  """Describes a table, and the inserts needed to sample `num_samples` items."""
  if isinstance(seen, str):
    return seen
  counts = limiter.Limiter(table, seen.inserts, seen.samples)
  size = seen.size
  if table.max_times_sampled == 1:  # All but the last are removed by then.
    size -= num_samples - 1
  missing = counts.inserts_missing(num_samples, size)
  text = _describe(table, seen)
  if not missing:
    return (
      f'{text} So {num_samples} can be sampled: missing samples may have been '
      'lost in transit, see `Batches.patience_seconds`.'
    )
  text += f' To sample {num_samples} takes {missing} more inserts'
  possible = counts.num_insertable(missing)
  if possible == missing:
    return f'{text}.'
  setting = 'max_size' if table.rate_limit is None else 'error_buffer'
  return (
    f'{text}, but {setting} is too small: it allows no more than {possible}.'
  )


def before_inserts(table: tables.TableSpec, seen: Seen, num_items: int) -> str:
  """Describes a table, and the samples needed to insert `num_items` more."""
  if isinstance(seen, str):
    return seen
  counts = limiter.Limiter(table, seen.inserts, seen.samples)
  missing = counts.samples_missing(num_items)
  text = _describe(table, seen)
  if not missing:
    return f'{text} So there is room for {num_items} more.'
  return f'{text} To insert {num_items} takes {missing} more samples.'


def insert_deadlock(
  table: tables.TableSpec, status: server.TableInfo, num_samples: int
) -> DeadlockError:
  """Returns the error for sampling more than was inserted."""
  return DeadlockError(
    f'{_ALONE} insert. {before_samples(table, status, num_samples)} Continue '
    'acting before the next update: `replay.ReplayRatio` computes when one is '
    'due.'
  )


def sample_deadlock(
  table: tables.TableSpec,
  status: server.TableInfo,
  num_items: int,
  other_writer: str = '',
) -> DeadlockError:
  """Returns the error for inserting more than the table accepts.

  Args:
    table: Description of the table.
    status: Status of the table.
    num_items: Pending items.
    other_writer: Text that names another writer that has to insert first; '' if
      there is no such writer.
  """
  return DeadlockError(
    f'{_ALONE} sample{other_writer}. '
    f'{before_inserts(table, status, num_items)} Do the updates that are due '
    'before acting: `replay.ReplayRatio` computes their number.'
  )


def ask_server(client: Any, table: tables.TableSpec) -> server.TableInfo:
  """Queries a table's status; raises an error after a short timeout."""
  return server.table_status(client, [table], _LOOK_SECONDS)[table.name]


def look(ask: Callable[[], server.TableInfo | None]) -> Seen:
  """Returns a table's status, or the reason why it is unknown."""
  try:
    return ask() or ''
  except Exception as error:
    return settings.text_of(error)


class WaitMonitor:
  """Logs one warning per wait if the table has no inserts and no samples."""

  def __init__(
    self,
    seconds: float | None,
    ask: Callable[[], server.TableInfo | None],
    describe: Callable[[Seen], str],
  ):
    """Starts with the wait.

    Args:
      seconds: Duration without activity before the warning; None to disable it.
      ask: Returns the table's status; raises an error that explains why not.
      describe: Returns a text of the wait.
    """
    self._ask = ask
    self._describe_wait = describe
    self._pause = float('inf') if seconds is None else seconds / 2
    self._next_look = self._pause
    self._seen: tuple[int, int] | None = None

  def keep(self, waited: float) -> None:
    """Checks the table if a check is due.

    Args:
      waited: Seconds since the wait began.
    """
    if waited < self._next_look:
      return
    self._next_look = waited + self._pause
    seen = look(self._ask)
    before, self._seen = self._seen, None
    if not isinstance(seen, str):
      self._seen = seen.inserts, seen.samples
      if before != self._seen:
        return
    elif not seen:
      return
    _log.warning(
      'Waited %.0f seconds for %s', waited, self._describe_wait(seen)
    )
    self._next_look = float('inf')


def _describe(table: tables.TableSpec, status: server.TableInfo) -> str:
  """Describes a table's fill level, and the counts of its rate limiter."""
  limit = table.rate_limit
  kind = 'a queue'
  if limit is not None:
    kind = (
      f'samples_per_insert {limit.samples_per_insert:g}, min_size '
      f'{limit.min_size}, error_buffer {limit.error_buffer:g}'
    )
  return (
    f"Table '{table.name}' ({kind}) holds {status.size} of at most "
    f'{status.max_size} items, after {status.inserts} inserts and '
    f'{status.samples} samples.'
  )
