"""Handshakes and admission of an inference server's clients."""

import contextlib
import json
import selectors
import socket
import time
from collections.abc import Generator, Iterator, Mapping
from typing import Any

from repertory.components import specs
from repertory.components.config import settings
from repertory.components.inference import client, connections, frames
from repertory.components.runtime import callers

_TYPES = {'actor': str, 'run_id': str, 'generation': int, 'token': str}

# Time limit for a handshake. Actors send it immediately; a silent connection
# would occupy a descriptor for ever.
TIMEOUT_SECONDS = 30.0


def receive(
  stream: socket.socket, deadline: float
) -> Generator[int, None, dict[str, Any]]:
  """Receives the message of a handshake from a non-blocking socket.

  Yields the event to wait for. It may be resumed without one, at `deadline`.

  Raises:
    frames.Disconnected: If the other side has gone.
    frames.ProtocolError: If that is no handshake, or too late.
  """
  data, has_gone = b'', False
  while not has_gone:
    yield selectors.EVENT_READ
    try:
      some = stream.recv(1 << 16)
      data, has_gone = data + some, not some
    except BlockingIOError:
      pass
    except OSError as error:
      raise frames.Disconnected from error
    payload = data[frames.HEADER_SIZE :]
    if len(data) >= frames.HEADER_SIZE:
      kind, size, _ = frames.parse_header(data[: frames.HEADER_SIZE])
      if kind != frames.HELLO or size > frames.MAX_JSON_SIZE:
        raise frames.ProtocolError(
          'A connection must begin with a handshake of at most '
          f'{frames.MAX_JSON_SIZE} bytes, got a frame of kind {kind} with '
          f'{size}.'
        )
      if len(payload) >= size:
        return frames.parse_json(payload)
    if time.monotonic() > deadline and not has_gone:
      raise frames.ProtocolError(
        f'Waited {TIMEOUT_SECONDS:g} seconds for the handshake with which '
        f'every connection begins, got {len(data)} bytes of it.'
      )
  raise frames.Disconnected


def check(
  hello: dict[str, Any],
  spec: specs.EnvironmentSpec,
  roles: Mapping[str, connections.Role],
  fencing: callers.Fencing,
) -> connections.Role:
  """Validates a handshake and returns the requested role.

  An actor may request environments of its own earlier connection.

  Raises:
    frames.ProtocolError: Naming the problem.
  """
  if hello.get('protocol') != frames.PROTOCOL:
    raise frames.ProtocolError(
      f'protocol must be {frames.PROTOCOL}, got {hello.get("protocol")!r}.'
    )
  for name, kind in _TYPES.items():
    if type(hello.get(name)) is not kind:
      # A token is never shown: another run's may still be secret.
      got = '' if name == 'token' else f', got {hello.get(name)!r}'
      raise frames.ProtocolError(
        f'{name} must be of type {kind.__name__}{got}.'
      )
  caller = callers.Caller(hello['actor'], hello['generation'], hello['token'])
  # First, because only callers of this run may see further errors.
  with _refusals():
    fencing.check_token(caller)
  purpose = hello.get('purpose')
  role = roles.get(purpose) if isinstance(purpose, str) else None
  if role is None:
    raise frames.ProtocolError(
      f'purpose must be one of {sorted(roles)}, got {hello.get("purpose")!r}.'
    )
  _check_specs(hello, spec)
  ids = hello.get('environment_ids')
  limit, most = role.store.num_environments, role.store.buckets[-1]
  if (
    not isinstance(ids, list)
    or not 0 < len(ids) <= most
    or not all(type(i) is int and 0 <= i < limit for i in ids)
    or len(set(ids)) < len(ids)
  ):
    raise frames.ProtocolError(
      f'environment_ids must be up to {most} distinct ones in [0, {limit}), '
      f'got {ids}.'
    )
  owners = {role.owners[i] for i in ids if i in role.owners}
  for owner in owners:
    if owner.actor != hello['actor'] or owner.run_id == hello['run_id']:
      raise frames.ProtocolError(
        f'environment_ids must be free; {owner} has some of {ids}.'
      )
  with _refusals():
    fencing.check(caller)
  return role


def send(stream: socket.socket, kind: int) -> None:
  """Sends a frame without payload; raises `frames.Disconnected`."""
  try:
    stream.send(frames.header(kind, 0))
  except OSError as error:
    raise frames.Disconnected from error


def refuse(stream: socket.socket, error: Exception) -> None:
  """Sends the reason for closing a connection, if the peer still listens."""
  with contextlib.suppress(OSError):
    reason = {'reason': settings.text_of(error)}
    stream.send(frames.pack_json(frames.REFUSED, reason))


@contextlib.contextmanager
def _refusals() -> Iterator[None]:
  """Converts refusals to protocol errors."""
  try:
    yield
  except callers.FencedError as error:
    raise frames.ProtocolError(str(error)) from error


def _check_specs(hello: dict[str, Any], spec: specs.EnvironmentSpec) -> None:
  for name, leaves in (
    ('timestep', client.timestep_leaves(spec)),
    ('action', client.action_leaves(spec)),
  ):
    expected = frames.describe(leaves)
    if hello.get(name) != expected:
      raise frames.ProtocolError(
        f'{name} must have the leaves {json.dumps(expected)} (shape, dtype), '
        f'got {json.dumps(hello.get(name))}: the actor has another environment.'
      )
