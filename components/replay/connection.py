"""Connection settings of a replay server."""

import dataclasses
import functools

import reverb

from repertory.components.runtime import signals


@dataclasses.dataclass(frozen=True)
class Connection:
  """Address of a replay server, with its timeout and stop signal.

  Attributes:
    address: 'host:port'.
    timeout_seconds: Maximum duration of any wait on the server.
    stop: Ends any wait on the server.
    warning_seconds: Duration after which a wait is logged as a warning if
      meanwhile the table had neither inserts nor samples; None for no warnings.
  """

  address: str
  timeout_seconds: float = 600.0
  stop: signals.StopSignal = dataclasses.field(
    default_factory=signals.StopSignal
  )
  warning_seconds: float | None = 5.0

  @functools.cached_property
  def client(self) -> reverb.Client:
    """The client, created on first use."""
    return reverb.Client(self.address)

  def __str__(self) -> str:
    return f'the replay server at {self.address}'
