"""Wait settings of a local table."""

import dataclasses

from repertory.components.runtime import signals


@dataclasses.dataclass(frozen=True)
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
