"""How long a table of this process is waited for."""

import dataclasses

from repertory.components import signals


@dataclasses.dataclass(frozen=True)
class Place:
  """What is said of a table of this process, and how long it is waited for.

  Attributes:
    timeout_seconds: How long any wait may last.
    stop: Ends any wait.
    warning_seconds: After how long a wait is told of in a warning, if meanwhile
      nothing has come to the table and nothing was sampled; None for never.
  """

  timeout_seconds: float = 600.0
  stop: signals.StopSignal = dataclasses.field(
    default_factory=signals.StopSignal
  )
  warning_seconds: float | None = 5.0

  def __str__(self) -> str:
    return 'this process'
