"""A fast actor of raw frames, with predictable replies; no TensorFlow."""

import contextlib
import json
import socket

import dm_env
import numpy as np

from repertory.components import specs
from repertory.components.inference import protocol
from repertory.components.network import addresses, frames

# Time-out of calls that should not block.
DEADLINE_SECONDS = 20.0

SPEC = specs.EnvironmentSpec(
  observations=specs.Array((2,), np.int32),
  # Environment id, `mix`, steps of the episode, and the version, twice.
  actions=specs.Array((5,), np.int32),
  rewards=specs.Array((), np.float32),
  discounts=specs.BoundedArray((), np.float32, 0, 1),
)

FIRST, MID, LAST = map(int, dm_env.StepType)


def mix(ids, observations):
  """Hashes ids `[B]` and observations `[B, 2]`."""
  return ids * 1009 + observations[..., 0] * 31 + observations[..., 1]


def timestep_frame(observations, step_types, kind=protocol.STEP):
  """Returns the bytes of timesteps `[B]`, of reward ½ and discount 1."""
  frame, leaves = frames.make_frame(
    protocol.timestep_leaves(SPEC), len(observations)
  )
  for leaf, value in zip(
    leaves, (step_types, 0.5, 1.0, observations), strict=True
  ):
    leaf[...] = value
  frame[: frames.HEADER_SIZE] = frames.header(
    kind, len(frame) - frames.HEADER_SIZE
  )
  return bytes(frame)


def hello(ids, **changes):
  """Returns the hello message of an actor, with changes."""
  message = {
    'protocol': protocol.PROTOCOL,
    'actor': 'raw',
    'generation': 0,
    'token': '',
    'environment_ids': list(ids),
    'timestep': frames.describe(protocol.timestep_leaves(SPEC)),
    'action': frames.describe(protocol.action_leaves(SPEC)),
  }
  return message | changes


def read(stream, size):
  """Reads a number of bytes; fails if the stream ends before."""
  data = bytearray()
  while len(data) < size:
    some = stream.recv(size - len(data))
    if not some:
      raise ConnectionError(f'The stream ended after {bytes(data)!r}.')
    data += some
  return bytes(data)


def read_frame(stream):
  """Returns the kind and the payload of the next frame."""
  kind, size, _ = frames.parse_header(read(stream, frames.HEADER_SIZE))
  return kind, read(stream, size)


def read_reason(stream):
  """Returns the server's reason for rejection; fails without one."""
  kind, payload = read_frame(stream)
  assert kind == frames.REFUSED, f'got a frame of kind {kind}'
  with contextlib.suppress(ConnectionResetError):  # It left bytes unread.
    assert stream.recv(1) == b'', 'the connection stays open'
  return json.loads(payload)['reason']


def speak(address, *data):
  """Connects and sends bytes; returns the stream."""
  stream = addresses.connect(address, DEADLINE_SECONDS)
  for some in data:
    stream.sendall(some)
  return stream


class RawLane:
  """Connection of an actor with precomputed frames and episode steps."""

  def __init__(self, address, ids, *, num_frames=1, seed=0, **message):
    """Connects; the other arguments are those of `hello`."""
    self.ids = np.array(ids, np.int32)
    size = len(self.ids)
    random = np.random.default_rng(seed)
    self.observations = random.integers(
      0, 1000, (num_frames + 1, size, 2), np.int32
    )
    # All rows start in the first frame; in others some end or begin an episode.
    self.step_types = random.choice(
      np.array([FIRST, MID, MID, LAST], np.int32), (num_frames + 1, size)
    )
    self.step_types[0] = FIRST
    self.step_types[1:, 0] = MID  # At least one row needs a reply.
    self.frames = [
      timestep_frame(o, s, protocol.STEP if n else protocol.START)
      for n, (o, s) in enumerate(zip(self.observations, self.step_types))
    ]
    self.counts = np.zeros(size, np.int32)
    self.version = -1
    self._now = 0
    self._answer = bytearray(
      len(frames.make_frame(protocol.action_leaves(SPEC), size)[0])
    )
    self.stream = speak(
      address, frames.pack_json(frames.HELLO, hello(ids, **message))
    )
    kind, payload = read_frame(self.stream)
    if kind != frames.WELCOME:
      self.stream.close()
      raise frames.ProtocolError(json.loads(payload)['reason'])

  def send(self, now):
    """Sends a frame by index; 0 is the first."""
    self._now = now
    self.stream.sendall(self.frames[now])

  def receive(self):
    """Waits for the reply and checks it; returns the actions `[B, 5]`."""
    view = memoryview(self._answer)
    received = self.stream.recv_into(view, 0, socket.MSG_WAITALL)
    if received >= frames.HEADER_SIZE:
      kind = frames.parse_header(view[: frames.HEADER_SIZE])[0]
      assert kind == protocol.ACTION, f'kind {kind}: {bytes(view)!r}'
    if received < len(view):
      raise ConnectionError(f'Got {received} of {len(view)} bytes.')
    actions = np.frombuffer(
      view[frames.HEADER_SIZE :], np.int32, len(self.ids) * 5
    ).reshape(-1, 5)
    self._check(actions)
    return actions

  def step(self, now=1):
    """Sends a frame and returns the reply."""
    self.send(now)
    return self.receive()

  def finish(self):
    """Ends the connection properly."""
    self.stream.sendall(frames.header(protocol.BYE, 0))
    assert read_frame(self.stream) == (protocol.GOODBYE, b'')
    self.close()

  def close(self):
    """Closes the connection at once."""
    self.stream.close()

  def _check(self, actions):
    step_types = self.step_types[self._now]
    counts = np.where(step_types == FIRST, 0, self.counts)
    asked = step_types != LAST  # Replies to other rows have no meaning.
    expected = np.stack(
      [self.ids, mix(self.ids, self.observations[self._now]), counts], axis=1
    )
    assert (actions[asked, :3] == expected[asked]).all(), (actions, expected)
    self.counts = counts + asked
    versions = actions[asked, 3:]
    assert (versions == versions[0, 0]).all(), f'mixed: {actions}'
    assert versions[0, 0] >= self.version, f'{self.version} then {actions}'
    self.version = int(versions[0, 0])
