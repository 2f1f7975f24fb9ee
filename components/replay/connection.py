"""How a node reaches the replay server, and how long it waits for it."""

import dataclasses
import functools

import reverb

from repertory.components import signals


@dataclasses.dataclass(frozen=True)
class Connection:
  """The way to a replay server.

  Attributes:
    address: 'host:port'.
    timeout_seconds: How long any wait on the server may last.
    stop: Ends any wait on the server.
    warning_seconds: After how long a wait is told of in a warning, if meanwhile
      nothing has come to the table and nothing was sampled; None for never.
  """

  address: str
  timeout_seconds: float = 600.0
  stop: signals.StopSignal = dataclasses.field(
    default_factory=signals.StopSignal
  )
  warning_seconds: float | None = 5.0

  @functools.cached_property
  def client(self) -> reverb.Client:
    """The client, made on first use."""
    return reverb.Client(self.address)

  def __str__(self) -> str:
    return f'the replay server at {self.address}'
