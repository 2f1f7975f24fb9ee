"""Wait settings of tables, and descriptions of waits in errors."""

import dataclasses
from collections.abc import Callable
from typing import TypeAlias

from repertory.components.config import settings
from repertory.components.replay import tables
from repertory.components.runtime import signals

# Status of a table, or the reason why it is unknown.
Seen: TypeAlias = tables.TableInfo | str


class DeadlockError(RuntimeError):
  """A thread waits for a table that only this thread could change."""


@dataclasses.dataclass(eq=False)
class WaitPolicy:
  """Wait settings of a table in this process; `str` is its name in errors.

  Attributes:
    timeout_seconds: Maximum duration of any wait.
    stop: Ends any wait.
  """

  timeout_seconds: float = 600.0
  stop: signals.StopSignal = dataclasses.field(
    default_factory=signals.StopSignal
  )

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
