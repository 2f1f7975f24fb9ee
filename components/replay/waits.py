"""Wait settings of tables, and descriptions of waits in logs and errors."""

import dataclasses
import logging
from collections.abc import Callable
from typing import TypeAlias

from repertory.components.config import settings
from repertory.components.replay import tables
from repertory.components.runtime import signals

# Status of a table, or the reason why it is unknown.
Seen: TypeAlias = tables.TableInfo | str

_log = logging.getLogger(__name__)


class DeadlockError(RuntimeError):
  """A thread waits for a table that only this thread could change."""


@dataclasses.dataclass(eq=False)
class WaitPolicy:
  """Wait settings of a table in this process; `str` is its name in errors.

  Attributes:
    timeout_seconds: Maximum duration of any wait.
    stop: Ends any wait.
    warning_seconds: Duration after which a wait is logged as a warning if
      meanwhile the table had neither inserts nor samples; None for no warnings.
  """

  timeout_seconds: float = 600.0
  stop: signals.StopSignal = dataclasses.field(
    default_factory=signals.StopSignal
  )
  warning_seconds: float | None = 5.0

  def __str__(self) -> str:
    return 'this process'


def describe(table: tables.TableSpec, seen: Seen) -> str:
  """Describes a table's limits and counts, or why they are unknown."""
  if isinstance(seen, str):
    return seen
  limit = table.rate_limit
  kind = 'a queue'
  if limit is not None:
    kind = (
      f'samples_per_insert {limit.samples_per_insert:g}, min_size '
      f'{limit.min_size}, error_buffer {limit.error_buffer:g}'
    )
  return (
    f"Table '{table.name}' ({kind}) holds {seen.size} of at most "
    f'{seen.max_size} items, after {seen.inserts} inserts and '
    f'{seen.samples} samples.'
  )


def deadlock(
  table: tables.TableSpec, status: tables.TableInfo, need: str, advice: str
) -> DeadlockError:
  """Returns the error of a thread that only itself could wake."""
  return DeadlockError(
    'This thread would wait forever: no other thread uses the table, so none '
    f'can {need}. {describe(table, status)} {advice}'
  )


def look(ask: Callable[[], tables.TableInfo | None]) -> Seen:
  """Returns a table's status, or the reason why it is unknown."""
  try:
    return ask() or ''
  except Exception as error:
    return settings.text_of(error)


class WaitMonitor:
  """Logs one warning per wait if the table has no inserts and no samples."""

  def __init__(
    self,
    policy: WaitPolicy,
    ask: Callable[[], tables.TableInfo | None],
    describe_wait: Callable[[Seen], str],
  ):
    """Starts with the wait.

    Args:
      policy: Time before the warning.
      ask: Returns the table's status; raises an error that explains why not.
      describe_wait: Returns the text of the warning.
    """
    seconds = policy.warning_seconds
    self._ask = ask
    self._describe_wait = describe_wait
    self._pause = float('inf') if seconds is None else seconds / 2
    self._next_look = self._pause
    self._counts: tuple[int, int] | None = None

  def keep(self, waited: float) -> None:
    """Checks the table if a check is due, `waited` seconds after the start."""
    if waited < self._next_look:
      return
    self._next_look = waited + self._pause
    seen = look(self._ask)
    before, self._counts = self._counts, None
    if not isinstance(seen, str):
      self._counts = seen.inserts, seen.samples
      if before != self._counts:
        return
    elif not seen:
      return
    _log.warning(
      'Waited %.0f seconds for %s', waited, self._describe_wait(seen)
    )
    self._next_look = float('inf')
