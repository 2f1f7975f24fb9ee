"""Wait settings and errors of tables, and descriptions of waits."""

import dataclasses
from collections.abc import Callable

from repertory.components.config import settings
from repertory.components.replay import tables
from repertory.components.runtime import signals


class ReplayCheckpointError(RuntimeError):
  """A replay server that is otherwise healthy could not write a checkpoint."""


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


def describe(
  table: tables.TableSpec, ask: Callable[[], tables.TableInfo]
) -> str:
  """Describes a table's limits and counts, or why they are unknown.

  The last period is left out.
  """
  try:
    status = ask()
  except Exception as error:
    return settings.text_of(error).removesuffix('.')
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
    f'{status.samples} samples'
  )


def no_batch(
  table: tables.TableSpec,
  place: WaitPolicy,
  ask: Callable[[], tables.TableInfo],
) -> TimeoutError:
  """Returns the error of a wait for a batch, with the table's status."""
  return TimeoutError(
    f'Waited {place.timeout_seconds:g} seconds for a batch from table '
    f"'{table.name}' of {place}. {describe(table, ask)}."
  )


def deadlock(
  table: tables.TableSpec, status: tables.TableInfo, need: str, advice: str
) -> DeadlockError:
  """Returns the error of a thread that only itself could wake."""
  return DeadlockError(
    'This thread would wait forever: no other thread uses the table, so none '
    f'can {need}. {describe(table, lambda: status)}. {advice}'
  )
