"""Thin actor: steps environments, with remote inference, no TensorFlow."""

import contextlib
import dataclasses
import time
from collections.abc import Sequence
from typing import Any

from repertory.components.actors import environment_loop
from repertory.components.inference import client as client_lib
from repertory.components.inference import thin_actor
from repertory.components.runtime import signals
from repertory.launch.coordination import starts
from repertory.launch.experiments import environment_batches
from repertory.launch.nodes import acting, node

# Delay before it looks for a new server.
_RECONNECT_SECONDS = 0.25


@dataclasses.dataclass(frozen=True)
class ThinSettings:
  """Settings of a thin actor.

  `seeds` are those of its first generation, and `server` is the name of its
  inference node. With 2 connections, one half of the environments steps while
  the other half waits for actions.
  """

  server: str
  environment_ids: Sequence[int]
  seeds: Sequence[int]
  environments: environment_batches.EnvironmentSettings
  spec: Any
  timeout_seconds: float
  num_connections: int = 1


class ThinActorNode(acting.ActingNode):
  """Steps environments with actions from an inference server.

  When the server is lost, it connects to the new one with new environments.
  """

  def __init__(self, context: node.Context, settings: ThinSettings):
    """Makes the environments and connects."""
    super().__init__(context, [], settings.environment_ids)
    self._settings = settings
    self._caller = context.caller
    self._report_start = context.report_start
    self._clients: list[client_lib.InferenceClient] = []
    self._environments = []
    self._num_servers = 0  # Lost so far.
    self._connect()

  def run(self) -> None:
    while True:
      try:
        super().run()
        for client in self._clients:
          client.finish()
        return
      except client_lib.ServerLost:
        self._disconnect()
        self._num_servers += 1
        if self._stop.wait(_RECONNECT_SECONDS):
          raise signals.Stopped from None
      self._connect()

  def close(self) -> None:
    """Ends the connections."""
    self._disconnect()

  def _connect(self) -> None:
    """Makes the environments, and connects them to the inference server."""
    since = time.monotonic()
    while True:
      self._report_start(f'waiting for {self._settings.server}')
      address = starts.find_address(
        self._coordinator,
        self._settings.server,
        asks=self.name,
        timeout_seconds=self._settings.timeout_seconds,
        stop=self._stop,
      )
      self._report_start('making its environments')
      try:
        self._loops = [
          self._make_connection(address, connection)
          for connection in range(self._settings.num_connections)
        ]
        return
      except client_lib.ServerLost:
        self._disconnect()
        if time.monotonic() - since > self._settings.timeout_seconds:
          raise
      except BaseException:
        self._disconnect()
        raise
      if self._stop.wait(_RECONNECT_SECONDS):
        raise signals.Stopped

  def _make_connection(
    self, address: str, connection: int
  ) -> environment_loop.EnvironmentLoop:
    """Makes and connects the environments of one lane."""
    settings = self._settings
    part = slice(connection, None, settings.num_connections)
    environments = settings.environments.make_environments(
      environment_batches.renew(
        settings.seeds, self._caller.generation, self._num_servers
      )[part]
    )
    self._environments.append(environments)
    loop, client = make_loop(
      address,
      environments,
      settings.spec,
      settings.environment_ids[part],
      caller=self._caller._replace(name=f'{self.name} lane {connection}'),
      purpose=client_lib.TRAINING,
      timeout_seconds=settings.timeout_seconds,
      stop=self._stop,
    )
    self._clients.append(client)
    loop.read_info(settings.environments.info)
    return loop

  def _disconnect(self) -> None:
    self.write_recordings()
    self._loops = []
    with contextlib.ExitStack() as stack:  # Close all, even if one fails.
      while self._environments:
        stack.callback(self._environments.pop().close)
      while self._clients:
        stack.callback(self._clients.pop().close)


def make_loop(
  address: str,
  environments: environment_batches.EnvironmentBatch,
  spec: Any,
  environment_ids: Sequence[int],
  **client_settings,
) -> tuple[environment_loop.EnvironmentLoop, client_lib.InferenceClient]:
  """Connects environments to a server; the caller must close the client."""
  client = client_lib.InferenceClient(
    address, spec, environment_ids, **client_settings
  )
  actor = thin_actor.ThinActor(client, spec, len(environment_ids))
  loop = environment_loop.EnvironmentLoop(environments, actor)
  return loop, client
