"""Thin actors, whose policy runs on an inference server.

Needs no TensorFlow.
"""

import time
from collections.abc import Sequence

import dm_env
import tree

from repertory.components import core, specs, types
from repertory.components.inference import protocol
from repertory.components.network import callers, client_stream, frames
from repertory.components.runtime import nests, signals


class InferenceClient:
  """Sends timesteps of some environments, and receives their actions.

  A request is answered before the next one is sent. Timesteps that are all LAST
  need no action, and get no answer.

  Attributes:
    is_waiting: Whether an answer is outstanding.
  """

  def __init__(
    self,
    address: str,
    spec: specs.EnvironmentSpec,
    environment_ids: Sequence[int],
    *,
    caller: callers.Caller,
    timeout_seconds: float = 600.0,
    stop: signals.StopSignal | None = None,
  ):
    """Connects and performs the handshake.

    Args:
      address: The server's address; see `addresses`.
      spec: Spec of one environment.
      environment_ids: Ids of the environments, one per row.
      caller: Identity of this process. A later connection under the same name
        takes over its environments, unless its generation is older.
      timeout_seconds: Time limit for an answer.
      stop: Ends a wait when set.

    Raises:
      frames.ProtocolError: If the server refuses; with its reason.
      ServerLost: If the server cannot be reached.
      TimeoutError: If it did not answer in time.
    """
    self._to_action = nests.Unflattener(spec.actions)
    timestep = protocol.timestep_leaves(spec)
    action = protocol.action_leaves(spec)
    num_rows = len(environment_ids)
    self._frame, self._leaves = frames.make_frame(timestep, num_rows)
    self._answer, self._actions = frames.make_frame(action, num_rows)
    self.is_waiting = False
    self._sent_at = self._round_trip = 0.0
    message = {
      'protocol': protocol.PROTOCOL,
      'actor': caller.name,
      'generation': caller.generation,
      'token': caller.token,
      'environment_ids': [int(i) for i in environment_ids],
      'timestep': frames.describe(timestep),
      'action': frames.describe(action),
    }
    self._stream = client_stream.ClientStream(
      address,
      message,
      server='inference server',
      timeout_seconds=timeout_seconds,
      stop=stop or signals.StopSignal(),
    )

  def send(self, timestep: dm_env.TimeStep, *, start: bool = False) -> None:
    """Sends timesteps `[B]`, which are answered unless all are LAST.

    With `start`, the environments were reset, and all are FIRST.

    Raises:
      ServerLost: If the server is gone.
      signals.Stopped: If the stop signal was set.
      TimeoutError: If the server takes no data.
    """
    for array, leaf in zip(
      self._leaves,
      (
        timestep.step_type,
        timestep.reward,
        timestep.discount,
        *tree.flatten(timestep.observation),
      ),
      strict=True,
    ):
      array[...] = leaf
    kind = protocol.START if start else protocol.STEP
    size = len(self._frame) - frames.HEADER_SIZE
    self._frame[: frames.HEADER_SIZE] = frames.header(
      kind, size, self._round_trip
    )
    self._sent_at = time.perf_counter()
    self._stream.send(self._frame, 'timesteps')
    self.is_waiting = not protocol.is_answerless(self._leaves[0])

  def receive(self) -> types.Nest:
    """Waits for the actions `[B, ...]`; the next call reuses the arrays.

    Raises:
      frames.ProtocolError: If the server refused the request.
      ServerLost: If the server is gone.
      signals.Stopped: If the stop signal was set.
      TimeoutError: If no answer came in time.
    """
    self._stream.receive(protocol.ACTION, self._answer, 'actions')
    self.is_waiting = False
    self._round_trip = time.perf_counter() - self._sent_at
    return self._to_action(self._actions)

  def finish(self) -> None:
    """Waits until the server has written everything to replay.

    Raises:
      As `receive`.
    """
    if self.is_waiting:
      self.receive()
    self._stream.send(memoryview(frames.header(protocol.BYE, 0)), 'the end')
    goodbye = memoryview(bytearray(frames.HEADER_SIZE))
    self._stream.receive(protocol.GOODBYE, goodbye, 'a goodbye')

  def close(self) -> None:
    """Closes the connection."""
    self._stream.close()


class ThinActor(core.Actor):
  """Streams timesteps to an inference server and receives its actions.

  It sends each step immediately, so that two of them, alternating between two
  environment batches, hide the server's latency behind the environments' time.
  """

  def __init__(
    self,
    client: InferenceClient,
    spec: specs.EnvironmentSpec,
    batch_size: int,
  ):
    self._client = client
    # For environments whose episode has ended, and which ignore it.
    self._no_action = specs.zeros(spec.actions, batch_size)

  def observe_first(self, timestep: dm_env.TimeStep) -> None:
    """Starts an episode in every slot; `timestep` is a batch, all FIRST."""
    if self._client.is_waiting:
      self._client.receive()  # For the abandoned episodes.
    self._client.send(timestep, start=True)

  def select_action(self, observation: types.Nest) -> types.Nest:
    """Returns the actions for the last observed timesteps."""
    del observation  # Already sent.
    if self._client.is_waiting:
      return self._client.receive()
    return self._no_action

  def observe(self, action: types.Nest, next_timestep: dm_env.TimeStep) -> None:
    """Sends a step of every slot; the server knows the actions."""
    del action
    self._client.send(next_timestep)

  def update(self, wait: bool = False) -> None:
    """Does nothing: the server updates the variables."""
    del wait
