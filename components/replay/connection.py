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
  """

  address: str
  timeout_seconds: float = 600.0
  stop: signals.StopSignal = dataclasses.field(
    default_factory=signals.StopSignal
  )

  @functools.cached_property
  def client(self) -> reverb.Client:
    """The client, made on first use."""
    return reverb.Client(self.address)

  def __str__(self) -> str:
    return f'the replay server at {self.address}'
