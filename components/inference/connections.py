"""Server side of an actor's connection, from its handshake on."""

import json
import selectors
import socket
import time
from collections.abc import Callable, Generator
from typing import Any, NamedTuple

import dm_env
import numpy as np

from repertory.components import specs, types
from repertory.components.inference import protocol, state_store
from repertory.components.network import callers, frames
from repertory.components.runtime import nests


class Chosen(NamedTuple):
  """The last actions of an actor, leaves of extras, and their version."""

  action: types.Nest
  extras: list[np.ndarray]
  version: int  # Learner steps of the variables that chose them.


class ActorConnection:
  """An actor's environments, and the exchange with it.

  Methods that send or receive raise `frames.Disconnected` if the actor has
  gone.

  Attributes:
    stream: The socket, which does not block.
    exchange: Generator of the whole exchange, which yields what it waits for:
      an event of the socket, or the end of a function that may block.
    events: Events of the socket that are registered with the selector.
    deadline: Local time until which the handshake must be complete.
    arrived_at: Local time at which the frame to answer arrived.
    is_pending: Whether its timesteps wait for the policy.
    is_closed: Whether the exchange has ended.
    actor: Name of the actor; '' before the handshake.
    ids: Environment ids, int32 `[B]`.
    leaves: Leaves of the latest timesteps, `[B, ...]`.
    adder: Adder of its experience; None if nothing is stored.
    chosen: The last actions, which lead to the next timesteps; None if nothing
      is stored.
    written_version: Learner steps of the variables behind the action of the
      step being written.
  """

  exchange: Generator[Any, None, None]
  actor = ''
  adder: Any = None
  chosen: Chosen | None = None
  written_version = 0

  def __init__(self, stream: socket.socket):
    self.stream = stream
    self.events = 0
    self.deadline = time.monotonic() + frames.HANDSHAKE_SECONDS
    self.arrived_at = 0.0
    self.is_pending = self.is_closed = False

  def admit(
    self,
    hello: dict[str, Any],
    spec: specs.EnvironmentSpec,
    store: state_store.StateStore,
    make_adder: Callable[['ActorConnection'], Any] | None,
  ) -> None:
    """Takes over the environments of a handshake that has been checked."""
    self.actor = hello['actor']
    self.ids = np.asarray(hello['environment_ids'], np.int32)
    self.batch_size = len(self.ids)
    self._store = store
    self._frame, self.leaves = frames.make_frame(
      protocol.timestep_leaves(spec), self.batch_size
    )
    self._payload_size = len(self._frame) - frames.HEADER_SIZE
    self._answer, self._answer_leaves = frames.make_frame(
      protocol.action_leaves(spec), self.batch_size
    )
    self._answer[: frames.HEADER_SIZE] = frames.header(
      protocol.ACTION, len(self._answer) - frames.HEADER_SIZE
    )
    self._to_observation = nests.Unflattener(spec.observations)
    self._to_action = nests.Unflattener(spec.actions)
    self._extras: list[np.ndarray] = []
    if make_adder is not None:
      self.adder = make_adder(self)
      self.forget_action()

  def __str__(self) -> str:
    return f"'{self.actor}'"

  def receive(self) -> Generator[int, None, tuple[int, float]]:
    """Receives a whole frame; returns its kind and the actor's round trip.

    Yields the event to wait for. Raises `frames.ProtocolError` if such a frame
    is not allowed now.
    """
    frame, received, end = self._frame, 0, frames.HEADER_SIZE
    kind, round_trip = 0, 0.0
    while received < end:
      yield selectors.EVENT_READ
      received += _receive_into(self.stream, frame[received:])
      if received >= frames.HEADER_SIZE:
        head = frame[: frames.HEADER_SIZE]
        kind, size, round_trip = frames.parse_header(head)
        self._check(kind, size)
        end = frames.HEADER_SIZE + size
    return kind, round_trip

  def fill(self, inputs: list[np.ndarray], rows: slice) -> None:
    """Copies the timesteps to rows of a batch."""
    step_type, _, _, *observation = self.leaves
    for array, leaf in zip(inputs, (self.ids, step_type, *observation)):
      array[rows] = leaf

  def take(
    self, actions: list[np.ndarray], extras: list[np.ndarray], rows: slice
  ) -> None:
    """Copies the outputs from rows of a batch."""
    for array, leaf in zip(self._answer_leaves, actions):
      array[...] = leaf[rows]
    if self.adder is not None:
      self._extras = [leaf[rows] for leaf in extras]

  def keep_action(self, version: int) -> None:
    """Stores the answered action, of a policy's version, for the next step."""
    if self.adder is not None:
      action = self._to_action([leaf.copy() for leaf in self._answer_leaves])
      self.chosen = Chosen(action, self._extras, version)

  def forget_action(self) -> None:
    """Stores zeros for the next step, when the policy is not run."""
    if self.adder is not None:
      zeros = [np.zeros_like(leaf) for leaf in self._answer_leaves]
      extras = self._store.empty_extras(self.batch_size)
      version = self.chosen.version if self.chosen else 0
      self.chosen = Chosen(self._to_action(zeros), extras, version)

  def write_step(self, kind: int, chosen: Chosen | None) -> bool:
    """Writes the frame and the actions that led there to the adder.

    Returns whether the adder must wait.
    """
    if self.adder is None or chosen is None:
      return False
    step_type, reward, discount, *observation = self.leaves
    timestep: Any = dm_env.TimeStep(
      step_type, reward, discount, self._to_observation(observation)
    )
    if kind == protocol.START:
      self.adder.add_first(timestep)
      return False
    self.written_version = chosen.version
    extras = self._store.unflatten_extras(chosen.extras)
    self.adder.put(chosen.action, timestep, extras)
    return self.adder.is_ahead()

  def take_adder(self) -> Any:
    """Returns the adder once, for the caller to close; else None."""
    adder, self.adder = self.adder, None
    return adder

  def send_answer(self) -> Generator[int, None, None]:
    """Sends the actions; yields the event to wait for if the socket is full."""
    unsent = self._answer
    while True:
      try:
        unsent = unsent[self.stream.send(unsent) :]
      except BlockingIOError:
        pass
      except OSError as error:
        raise frames.Disconnected from error
      if not unsent:
        return
      yield selectors.EVENT_WRITE

  def _check(self, kind: int, size: int) -> None:
    expected = {
      protocol.START: self._payload_size,
      protocol.STEP: self._payload_size,
      protocol.BYE: 0,
    }
    if kind not in expected or size != expected[kind]:
      raise frames.ProtocolError(
        f'{self} sent a frame of kind {kind} with {size} bytes; for '
        f'{self.batch_size} environments timesteps have {self._payload_size}.'
      )


def _receive_into(stream: socket.socket, buffer: memoryview) -> int:
  try:
    count = stream.recv_into(buffer)
  except BlockingIOError:
    return 0
  except OSError as error:
    raise frames.Disconnected from error
  if not count:
    raise frames.Disconnected
  return count


def receive_hello(
  stream: socket.socket,
) -> Generator[int, None, dict[str, Any]]:
  """Receives the message of a handshake; yields the event to wait for.

  Raises:
    frames.Disconnected: If the other side has gone.
    frames.ProtocolError: If that is not a handshake.
  """
  head = bytearray(frames.HEADER_SIZE)
  yield from _fill(stream, head)
  kind, size, _ = frames.parse_header(head)
  frames.check_hello(kind, size)
  payload = bytearray(size)
  yield from _fill(stream, payload)
  return frames.parse_json(payload)


def _fill(
  stream: socket.socket, buffer: bytearray
) -> Generator[int, None, None]:
  left = memoryview(buffer)
  while left:
    yield selectors.EVENT_READ
    left = left[_receive_into(stream, left) :]


def check_hello(
  hello: dict[str, Any],
  spec: specs.EnvironmentSpec,
  store: state_store.StateStore,
  owners: dict[int, ActorConnection],
  fencing: callers.Fencing,
) -> None:
  """Validates a handshake.

  An actor may request environments of its own earlier connection; `owners` are
  the connections of environment ids.

  Raises:
    frames.ProtocolError: Naming the problem.
    callers.FencedError: If it is of another run, or was replaced.
  """
  if hello.get('protocol') != protocol.PROTOCOL:
    raise frames.ProtocolError(
      f'protocol must be {protocol.PROTOCOL}, got {hello.get("protocol")!r}.'
    )
  try:
    caller = callers.Caller(
      str(hello['actor']), int(hello['generation']), str(hello['token'])
    )
    ids = [int(i) for i in hello['environment_ids']]
  except (KeyError, TypeError, ValueError, OverflowError) as error:
    raise frames.ProtocolError(
      f'A handshake must name actor and environments: {error!r}.'
    ) from error
  # First, because only callers of this run may see further errors.
  fencing.check_token(caller)
  for name, leaves in (
    ('timestep', protocol.timestep_leaves(spec)),
    ('action', protocol.action_leaves(spec)),
  ):
    expected = frames.describe(leaves)
    if hello.get(name) != expected:
      raise frames.ProtocolError(
        f'{name} must have the leaves {json.dumps(expected)} (shape, dtype), '
        f'got {json.dumps(hello.get(name))}: the actor has another environment.'
      )
  limit, most = store.num_environments, store.buckets[-1]
  is_distinct = 0 < len(set(ids)) == len(ids) <= most
  if not is_distinct or not set(ids) <= set(range(limit)):
    raise frames.ProtocolError(
      f'environment_ids must be up to {most} distinct ones in [0, {limit}), '
      f'got {ids}.'
    )
  for owner in {owners[i] for i in ids if i in owners}:
    if owner.actor != caller.name:
      raise frames.ProtocolError(
        f'environment_ids must be free; {owner} has some of {ids}.'
      )
  fencing.check(caller)


def send(stream: socket.socket, kind: int) -> None:
  """Sends a frame without payload; raises `frames.Disconnected`."""
  try:
    stream.send(frames.header(kind, 0))
  except OSError as error:
    raise frames.Disconnected from error
