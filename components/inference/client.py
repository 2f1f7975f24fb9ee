"""Thin actors, whose policy runs on an inference server.

Needs no TensorFlow.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any

import dm_env
import numpy as np
import tree

from repertory.components import core, types
from repertory.components.inference import addresses, frames
from repertory.components.runtime import callers, nests, signals

_LAST = int(dm_env.StepType.LAST)

# Interval at which waits check the stop signal.
_SLICE_SECONDS = 0.2


class ServerLost(ConnectionError):
  """The server cannot be reached, or has gone."""


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
    spec: Any,
    environment_ids: Sequence[int],
    *,
    caller: callers.Caller,
    timeout_seconds: float = 600.0,
    stop: signals.StopSignal | None = None,
  ):
    """Connects and performs the handshake.

    Args:
      address: The server's address; see `addresses`.
      spec: `specs.EnvironmentSpec` of one environment; untyped, for that module
        loads TensorFlow.
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
    self._address = address
    self._timeout_seconds = timeout_seconds
    self._stop = stop or signals.StopSignal()
    self._to_action = nests.Unflattener(spec.actions)
    timestep, action = timestep_leaves(spec), action_leaves(spec)
    num_rows = len(environment_ids)
    self._frame, self._leaves = frames.make_frame(timestep, num_rows)
    self._answer, self._actions = frames.make_frame(action, num_rows)
    self.is_waiting = False
    self._sent_at = self._round_trip = 0.0
    try:
      self._stream = addresses.connect(address, timeout_seconds)
    except OSError as error:
      raise ServerLost(
        f'No inference server answers at {address}: {error}.'
      ) from error
    self._stream.settimeout(_SLICE_SECONDS)
    try:
      message = {
        'protocol': frames.PROTOCOL,
        'actor': caller.name,
        'generation': caller.generation,
        'token': caller.token,
        'environment_ids': [int(i) for i in environment_ids],
        'timestep': frames.describe(timestep),
        'action': frames.describe(action),
      }
      self._send(frames.pack_json(frames.HELLO, message))
      self._receive(frames.WELCOME, bytearray(frames.HEADER_SIZE), 'a welcome')
    except BaseException:
      self._stream.close()
      raise

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
    kind = frames.START if start else frames.STEP
    size = len(self._frame) - frames.HEADER_SIZE
    self._frame[: frames.HEADER_SIZE] = frames.header(
      kind, size, self._round_trip
    )
    self._sent_at = time.perf_counter()
    self._send(self._frame)
    self.is_waiting = not is_answerless(self._leaves[0])

  def receive(self) -> types.Nest:
    """Waits for the actions `[B, ...]`; the next call reuses the arrays.

    Raises:
      frames.ProtocolError: If the server refused the request.
      ServerLost: If the server is gone.
      signals.Stopped: If the stop signal was set.
      TimeoutError: If no answer came in time.
    """
    self._receive(frames.ACTION, self._answer, 'actions')
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
    self._send(frames.header(frames.BYE, 0))
    self._receive(frames.GOODBYE, bytearray(frames.HEADER_SIZE), 'a goodbye')

  def close(self) -> None:
    """Closes the connection."""
    self._stream.close()

  def _send(self, data: bytes | memoryview) -> None:
    self._transfer(memoryview(data), self._stream.send, 'it to take timesteps')

  def _receive(self, kind: int, answer, what: str) -> None:
    """Receives a frame of one kind and size into `answer`."""
    view, size_of_header = memoryview(answer), frames.HEADER_SIZE
    self._fill(view[:size_of_header], what)
    found, size, _ = frames.parse_header(view[:size_of_header])
    if found == frames.REFUSED:
      message = bytearray(min(size, frames.MAX_JSON_SIZE))
      self._fill(memoryview(message), 'a reason')
      reason = frames.parse_json(bytes(message)).get('reason')
      raise frames.ProtocolError(
        f'The inference server at {self._address} refuses: {reason}'
      )
    if found != kind or size != len(view) - size_of_header:
      raise frames.ProtocolError(
        f'Expected {what} from the inference server at {self._address}, got a '
        f'frame of kind {found} with {size} bytes.'
      )
    self._fill(view[size_of_header:], what)

  def _fill(self, view: memoryview, what: str) -> None:
    self._transfer(view, self._stream.recv_into, what)

  def _transfer(
    self, view: memoryview, move: Callable[[memoryview], int], what: str
  ) -> None:
    """Sends or receives all of a buffer, by calls that return a count."""

    def attempt(_: float) -> bool:
      nonlocal view
      try:
        while view and (count := move(view)):
          view = view[count:]
      except TimeoutError:
        return False
      except OSError as error:
        raise self._lost() from error
      if view:
        raise self._lost()
      return True

    signals.wait_for(
      attempt,
      lambda: f'{what} on the inference server at {self._address}',
      self._timeout_seconds,
      self._stop,
    )

  def _lost(self) -> ServerLost:
    return ServerLost(
      f'The inference server at {self._address} ended the connection.'
    )


class ThinActor(core.Actor):
  """Streams timesteps to an inference server and receives its actions.

  It sends each step immediately, so that two of them, alternating between two
  environment batches, hide the server's latency behind the environments' time.
  """

  def __init__(
    self,
    client: InferenceClient,
    spec: Any,
    batch_size: int,
  ):
    self._client = client
    # For environments whose episode has ended, and which ignore it.
    self._no_action = tree.map_structure(
      lambda leaf: np.zeros((batch_size, *leaf.shape), leaf.dtype), spec.actions
    )

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


def is_answerless(step_types: np.ndarray) -> bool:
  """Returns whether no row needs an action: all episodes have ended."""
  # The first row usually decides.
  return step_types.item(0) == _LAST and int(step_types.min()) == _LAST


def timestep_leaves(spec: Any) -> list[frames.LeafSpec]:
  """Returns the leaf specs of a timestep of one environment."""
  leaves = [spec.rewards, spec.discounts, *tree.flatten(spec.observations)]
  return [((), np.dtype(np.int32)), *map(_leaf_spec, leaves)]


def action_leaves(spec: Any) -> list[frames.LeafSpec]:
  """Returns the leaf specs of an action."""
  return list(map(_leaf_spec, tree.flatten(spec.actions)))


def _leaf_spec(leaf: Any) -> frames.LeafSpec:
  return tuple(leaf.shape), np.dtype(leaf.dtype)
