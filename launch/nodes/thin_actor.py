"""Thin actor: steps environments, with remote inference, no TensorFlow."""

import contextlib
import time
from collections.abc import Sequence
from typing import Any

from repertory.components.actors import environment_loop
from repertory.components.inference import client as client_lib
from repertory.components.network import client_stream
from repertory.components.runtime import signals
from repertory.launch.experiments import environment_batches
from repertory.launch.nodes import acting, node

# Delay before it looks for a new server.
_RECONNECT_SECONDS = 0.25


class ThinActorNode(acting.ActingNode):
  """Steps environments with actions from an inference server.

  When the server is lost, it connects to the new one with new environments.
  """

  def __init__(
    self,
    context: node.Context,
    *,
    server: str,
    environment_ids: Sequence[int],
    seeds: Sequence[int],
    environments: environment_batches.EnvironmentSettings,
    spec: Any,
    timeout_seconds: float,
    num_connections: int = 1,
  ):
    """Makes the environments and connects.

    Args:
      server: Name of its inference node.
      seeds: Seeds of the environments in its first generation.
      num_connections: With 2, one half of the environments steps while the
        other half waits for actions.
    """
    super().__init__(context, [], environment_ids)
    self._server = server
    self._seeds = seeds
    self._settings = environments
    self._spec = spec
    self._timeout_seconds = timeout_seconds
    self._num_connections = num_connections
    self._context = context
    self._clients: list[client_lib.InferenceClient] = []
    self._environments = []
    self._num_servers = 0  # Lost so far.
    context.closing.callback(self._disconnect)
    self._connect()

  def run(self) -> None:
    while True:
      try:
        super().run()
        for client in self._clients:
          client.finish()
        return
      except client_stream.ServerLost:
        self._disconnect()
        self._num_servers += 1
        if self._stop.wait(_RECONNECT_SECONDS):
          raise signals.Stopped from None
      self._connect()

  def _connect(self) -> None:
    """Makes the environments, and connects them to the inference server."""
    since = time.monotonic()
    while True:
      address = self._context.find_address(self._server, self._timeout_seconds)
      self._context.report_start('making its environments')
      try:
        self._loops = [
          self._make_connection(address, connection)
          for connection in range(self._num_connections)
        ]
        return
      except client_stream.ServerLost:
        self._disconnect()
        if time.monotonic() - since > self._timeout_seconds:
          raise
      if self._stop.wait(_RECONNECT_SECONDS):
        raise signals.Stopped

  def _make_connection(
    self, address: str, connection: int
  ) -> environment_loop.EnvironmentLoop:
    """Makes and connects the environments of one lane."""
    part = slice(connection, None, self._num_connections)
    environments = self._settings.make_environments(
      environment_batches.renew(
        self._seeds, self._context.generation, self._num_servers
      )[part]
    )
    self._environments.append(environments)
    ids = self._environment_ids[part]
    client = client_lib.InferenceClient(
      address,
      self._spec,
      ids,
      caller=self._context.caller._replace(
        name=f'{self.name} lane {connection}'
      ),
      timeout_seconds=self._timeout_seconds,
      stop=self._stop,
    )
    self._clients.append(client)
    loop = environment_loop.EnvironmentLoop(
      environments, client_lib.ThinActor(client, self._spec, len(ids))
    )
    loop.read_info(self._settings.info)
    return loop

  def _disconnect(self) -> None:
    self.write_recordings()
    self._loops = []
    with contextlib.ExitStack() as stack:  # Close all, even if one fails.
      while self._environments:
        stack.callback(self._environments.pop().close)
      while self._clients:
        stack.callback(self._clients.pop().close)
