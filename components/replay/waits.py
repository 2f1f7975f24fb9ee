"""What is told of a wait on a table, in numbers."""

import logging
from collections.abc import Callable
from typing import Any, TypeAlias

from repertory.components import settings
from repertory.components.replay import limiter, server, tables

# How a table is, or why that is not known.
Seen: TypeAlias = server.TableStatus | str

# How long a server may take to tell what a wait is for.
_LOOK_SECONDS = 2

_ALONE = (
  'This thread would wait for ever: it alone uses the table, so nobody else can'
)

_log = logging.getLogger(__name__)


class DeadlockError(RuntimeError):
  """Who waits for a table is the only one who could end the wait."""


def before_samples(table: tables.Table, seen: Seen, num_samples: int) -> str:
  """Says how a table is, and what it takes to sample so many items at once."""
  if isinstance(seen, str):
    return seen
  counts = limiter.Limiter(table, seen.inserts, seen.samples)
  size = seen.size
  if table.max_times_sampled == 1:  # All but the last have left by then.
    size -= num_samples - 1
  missing = counts.inserts_missing(num_samples, size)
  told = _describe(table, seen)
  if not missing:
    return (
      f'{told} So {num_samples} can be sampled: what does not come may have '
      'been lost on its way, see `Batches.patience_seconds`.'
    )
  told += f' To sample {num_samples} takes {missing} more inserts'
  possible = counts.num_insertable(missing)
  if possible == missing:
    return f'{told}.'
  setting = 'max_size' if table.rate_limit is None else 'error_buffer'
  return (
    f'{told}, but {setting} is too small: it lets in no more than {possible}.'
  )


def before_inserts(table: tables.Table, seen: Seen, num_items: int) -> str:
  """Says how a table is, and what it takes to insert so many more items."""
  if isinstance(seen, str):
    return seen
  counts = limiter.Limiter(table, seen.inserts, seen.samples)
  missing = counts.samples_missing(num_items)
  told = _describe(table, seen)
  if not missing:
    return f'{told} So there is room for {num_items} more.'
  return f'{told} To insert {num_items} takes {missing} more samples.'


def nobody_inserts(
  table: tables.Table, status: server.TableStatus, num_samples: int
) -> DeadlockError:
  """Returns the error of who samples more than anybody has inserted."""
  return DeadlockError(
    f'{_ALONE} insert. {before_samples(table, status, num_samples)} Act on '
    'before the next update: `replay.Pace` tells when one is due.'
  )


def nobody_samples(
  table: tables.Table,
  status: server.TableStatus,
  num_items: int,
  whose_turn: str = '',
) -> DeadlockError:
  """Returns the error of who inserts more than anybody has sampled.

  Args:
    table: The table, as the agent describes it.
    status: How it is.
    num_items: Items that wait.
    whose_turn: Says for whom else they wait; '' if for nobody.
  """
  return DeadlockError(
    f'{_ALONE} sample{whose_turn}. {before_inserts(table, status, num_items)} '
    'Make the updates that are due before you act on: `replay.Pace` tells how '
    'many.'
  )


def ask_server(client: Any, table: tables.Table) -> server.TableStatus:
  """Asks a replay server how a table is; raises if it does not answer soon."""
  return server.table_status(client, [table], _LOOK_SECONDS)[table.name]


def look(ask: Callable[[], server.TableStatus | None]) -> Seen:
  """Returns how a table is, or why that is not known."""
  try:
    return ask() or ''
  except Exception as error:
    return settings.text_of(error)


class Vigil:
  """Warns, once in a wait, that the table it is for stands still."""

  def __init__(
    self,
    seconds: float | None,
    ask: Callable[[], server.TableStatus | None],
    tell: Callable[[Seen], str],
  ):
    """Begins with the wait.

    Args:
      seconds: How long it may stand still; None to never warn.
      ask: Asks how the table is; may raise what says why it does not answer.
      tell: Says what the wait is for.
    """
    self._ask = ask
    self._tell = tell
    self._pause = float('inf') if seconds is None else seconds / 2
    self._next_look = self._pause
    self._seen: tuple[int, int] | None = None

  def keep(self, waited: float) -> None:
    """Looks at the table if it is time to.

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
    _log.warning('Waited %.0f seconds for %s', waited, self._tell(seen))
    self._next_look = float('inf')


def _describe(table: tables.Table, status: server.TableStatus) -> str:
  """Says how full a table is, and what its rate limiter has counted."""
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
