"""An actor that only steps environments; its process loads no TensorFlow."""

import contextlib
import dataclasses
import time
from collections.abc import Sequence
from typing import Any

from repertory.components import environment_loop, signals
from repertory.components.inference import addresses as stream_addresses
from repertory.components.inference import client as client_lib
from repertory.components.inference import thin_actor
from repertory.launch.coordination import addresses, reports
from repertory.launch.nodes import acting, node
from repertory.launch.runs import environment_batches

# After so many answers the waits for them are judged.
_JUDGED_ANSWERS = 500

# How soon it looks for another server, when one is gone.
_RECONNECT_SECONDS = 0.25


@dataclasses.dataclass(frozen=True)
class ThinSettings:
  """What a thin actor has to know of a run.

  Attributes:
    server: Name of the inference node that acts for it.
    environment_ids: Which of all training environments it steps.
    seeds: One for each of them, in the first life of this node.
    environments: Makes them.
    spec: `specs.EnvironmentSpec` of one of them.
    timeout_seconds: How long it waits for actions, and for a server that was
      lost to come back.
    num_lanes: 1, or 2 for double buffering: halves of its environments, one of
      which steps while the other waits for its actions.
  """

  server: str
  environment_ids: Sequence[int]
  seeds: Sequence[int]
  environments: environment_batches.EnvironmentSettings
  spec: Any
  timeout_seconds: float
  num_lanes: int = 1


class ThinActorNode(acting.ActingNode):
  """Steps environments; an inference server acts for them.

  When the server goes away, it asks for the new one and starts its environments
  anew.
  """

  def __init__(self, settings: ThinSettings, context: node.Context):
    """Makes the environments and connects."""
    super().__init__(context, [], settings.environment_ids)
    self._settings = settings
    self._caller = context.caller
    self._tell_start = context.tell_start
    self._clients: list[client_lib.InferenceClient] = []
    self._environments = []
    self._host = context.interface.host
    self._address = ''
    self._is_judged = False
    self._num_servers = 0  # Before the one that it is connected to.
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

  def report(self) -> reports.Directive:
    if not self._is_judged:
      self._judge_waits()
    return super().report()

  def _judge_waits(self) -> None:
    """Warns, once, if the network takes more time than the environments."""
    waits = [client.waits for client in list(self._clients)]
    count = sum(one.count for one in waits)
    if count < _JUDGED_ANSWERS:
      return
    self._is_judged = True
    waiting = sum(one.waiting_seconds for one in waits) / count
    stepping = sum(one.stepping_seconds for one in waits) / count
    if waiting < stepping or stream_addresses.is_at(self._address, self._host):
      return
    help_text = 'more environments for each actor, or more actors'
    if self._settings.num_lanes == 1:
      help_text += ', or double buffering'
    self._coordinator.warn(
      self.name,
      f'{self.name} stands still for {1000 * waiting:.2f} ms at each step, in '
      f'which its actions come over the network, and steps its environments '
      f'for {1000 * stepping:.2f} ms: {help_text} would use that time',
    )

  def close(self) -> None:
    """Ends the connections."""
    self._disconnect()

  def _connect(self) -> None:
    """Makes the environments, and connects them as soon as there is a server.

    Raises:
      client.ServerLost: If it was told of one, again and again, that does not
        answer.
    """
    since = time.monotonic()
    while True:
      self._tell_start(f'waiting for {self._settings.server}')
      address = addresses.find(
        self._coordinator,
        self._settings.server,
        asks=self.name,
        timeout_seconds=self._settings.timeout_seconds,
        stop=self._stop,
      )
      self._address = address
      self._tell_start('making its environments')
      try:
        self._loops = [
          self._make_lane(address, lane)
          for lane in range(self._settings.num_lanes)
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

  def _make_lane(
    self, address: str, lane: int
  ) -> environment_loop.EnvironmentLoop:
    """Makes the environments of a lane, and connects them."""
    settings = self._settings
    part = slice(lane, None, settings.num_lanes)
    environments = settings.environments.make(
      environment_batches.renew(
        settings.seeds, self._caller.life, self._num_servers
      )[part]
    )
    self._environments.append(environments)
    loop, client = make_loop(
      address,
      environments,
      settings.spec,
      settings.environment_ids[part],
      caller=self._caller._replace(name=f'{self.name} lane {lane}'),
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
    with contextlib.ExitStack() as stack:  # Whichever of them fails.
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
  """Connects an environment batch to an inference server.

  Args:
    environments: To step.
    spec: `specs.EnvironmentSpec` of one of them.
    environment_ids: Which environment each slot has, in order.
    **client_settings: What `InferenceClient` takes besides.

  Returns:
    The loop, and its connection to close.
  """
  client = client_lib.InferenceClient(
    address, spec, environment_ids, **client_settings
  )
  actor = thin_actor.ThinActor(client, spec, len(environment_ids))
  loop = environment_loop.EnvironmentLoop(environments, actor)
  return loop, client
