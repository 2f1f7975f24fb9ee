"""An actor that only steps environments; its process loads no TensorFlow."""

import dataclasses
import itertools
import time
from collections.abc import Callable, Sequence
from typing import Any

from repertory.components import environment_loop, signals
from repertory.components.inference import client as client_lib
from repertory.components.inference import thin_actor
from repertory.launch.coordination import reports
from repertory.launch.host import lifetime
from repertory.launch.nodes import acting
from repertory.launch.runs import environment_batches


@dataclasses.dataclass(frozen=True)
class ThinSettings:
  """What a thin actor has to know of a run.

  Attributes:
    name: 'actor/<index>'.
    environment_ids: Of its environments.
    seeds: Of its environments.
    environments: Makes them.
    spec: `specs.EnvironmentSpec` of one of them.
    timeout_seconds: How long it waits for actions.
    num_lanes: 1, or 2 for double buffering: halves of its environments, one of
      which steps while the other waits for its actions.
  """

  name: str
  environment_ids: Sequence[int]
  seeds: Sequence[int]
  environments: environment_batches.EnvironmentSettings
  spec: Any
  timeout_seconds: float
  num_lanes: int = 1


# How soon it looks for another server, when one is gone.
_RECONNECT_SECONDS = 0.25


class ThinActorNode(acting.ActingNode):
  """Steps environments; an inference server acts for them."""

  def __init__(
    self,
    settings: ThinSettings,
    address: str,
    coordinator,
    stop: signals.StopSignal,
  ):
    """Makes the environments and connects.

    Args:
      settings: What to step.
      address: Of the inference server.
      coordinator: Grants steps and takes counts.
      stop: Ends every wait.
    """
    self._clients: list[client_lib.InferenceClient] = []
    self._environments = []
    try:
      loops = [
        self._make_lane(settings, address, lane, stop)
        for lane in range(settings.num_lanes)
      ]
      # Who registers has started, and is started again when it fails.
      coordinator.register(
        settings.name, {'environment_ids': list(settings.environment_ids)}
      )
    except BaseException:
      self.close()
      raise
    super().__init__(
      settings.name, loops, len(settings.environment_ids), coordinator, stop
    )

  def _make_lane(
    self, settings, address, lane: int, stop
  ) -> environment_loop.EnvironmentLoop:
    """Makes the environments of a lane, and connects them."""
    part = slice(lane, None, settings.num_lanes)
    environments = settings.environments.make(settings.seeds[part])
    self._environments.append(environments)
    loop, client = make_loop(
      address,
      environments,
      settings.spec,
      settings.environment_ids[part],
      actor=f'{settings.name} lane {lane}',
      purpose=client_lib.TRAINING,
      timeout_seconds=settings.timeout_seconds,
      stop=stop,
    )
    self._clients.append(client)
    return loop

  def run(self) -> None:
    super().run()
    for client in self._clients:
      client.finish()

  def close(self) -> None:
    """Ends the connections."""
    for client in self._clients:
      client.close()
    for environments in self._environments:
      environments.close()


def make_loop(
  address: str,
  environments: environment_batches.EnvironmentBatch,
  spec: Any,
  environment_ids: Sequence[int],
  *,
  observers: Sequence[Callable[[environment_loop.Episode], None]] = (),
  **client_settings,
):
  """Connects an environment batch to an inference server.

  Args:
    address: Of the server.
    environments: To step.
    spec: `specs.EnvironmentSpec` of one of them.
    environment_ids: Of its slots, in order.
    observers: Called with every finished episode.
    **client_settings: Of `InferenceClient`.

  Returns:
    The loop, and its connection to close.
  """
  client = client_lib.InferenceClient(
    address, spec, environment_ids, **client_settings
  )
  actor = thin_actor.ThinActor(client, spec, len(environment_ids))
  loop = environment_loop.EnvironmentLoop(
    environments, actor, observers=observers
  )
  return loop, client


class ThinActorService:
  """A thin actor, until the steps are used up.

  When its inference server goes away, it asks for the new one and starts its
  environments anew.
  """

  def __init__(self, settings: ThinSettings, inference, coordinator):
    lifetime.isolate(coordinator)
    self._settings = settings
    self._inference = inference
    self._coordinator = coordinator

  def run(self) -> None:
    name = self._settings.name
    connected_at = time.monotonic()
    with lifetime.failures_reported(name, self._coordinator):
      for attempt in itertools.count():
        address = find_address(
          self._inference,
          name,
          self._coordinator,
          self._settings.timeout_seconds,
        )
        if address is None:
          return
        try:
          if self._act(address, attempt):
            break
          connected_at = time.monotonic()
        except client_lib.ServerLost:
          if time.monotonic() - connected_at > self._settings.timeout_seconds:
            raise
        time.sleep(_RECONNECT_SECONDS)
      self._coordinator.finish(name)

  def _act(self, address: str, attempt: int) -> bool:
    """Acts until the steps are used up, or the server goes away.

    Args:
      address: Of the server.
      attempt: How many servers there were before.

    Returns:
      Whether the steps are used up.

    Raises:
      client.ServerLost: If the server is not there.
    """
    stop = signals.StopSignal()
    seeds = environment_batches.renew(self._settings.seeds, lifetime.life())
    settings = dataclasses.replace(
      self._settings, seeds=environment_batches.renew(seeds, attempt)
    )
    node = ThinActorNode(settings, address, self._coordinator, stop)
    try:
      with (
        lifetime.pulse(node.report, stop),
        lifetime.closed_at_end(node, stop),
      ):
        node.run()
    except client_lib.ServerLost:
      node.report()  # What it did until then.
      return False
    return True


def find_address(
  inference, name: str, coordinator, timeout_seconds: float
) -> str | None:
  """Asks where the server listens; None if the run ends before it does.

  Args:
    inference: Client of a node that has `inference_address`.
    name: Of the node that asks.
    coordinator: Knows whether the run goes on.
    timeout_seconds: For the start of that node.
  """

  def is_stopping() -> bool:
    return coordinator.poll(name).phase == reports.STOPPING

  if is_stopping():
    return None
  try:
    lifetime.wait_for_server(inference, timeout_seconds, is_stopping)
    call = inference.futures.inference_address(name)
    return lifetime.result_of(call, is_stopping)
  except signals.Stopped:
    return None
