"""Who calls a server, in which of its lives, and whether it still may.

A process that cannot be reached is replaced, though it may live on: behind a
network that was cut, for example. When it comes back, its calls are refused.
Needs no TensorFlow.
"""

import hmac
import threading
from typing import NamedTuple


class Caller(NamedTuple):
  """Who calls.

  Attributes:
    name: What it is called, in all its lives.
    life: How often it was started before.
    token: What all callers of a run know, and nobody else.
  """

  name: str
  life: int = 0
  token: str = ''


class RefusedError(ConnectionError):
  """Who calls is of another run, or another one has taken its place."""


class Admission:
  """Admits the callers of a run, each in its newest life alone."""

  def __init__(self, token: str = ''):
    """Knows of no life but the first.

    Args:
      token: The run's.
    """
    self._token = token.encode()
    self._lives: dict[str, int] = {}
    self._lock = threading.Lock()

  def replace(self, name: str, life: int) -> None:
    """Notes that a life of somebody begins; those before it are over."""
    with self._lock:
      self._lives[name] = max(life, self._lives.get(name, 0))

  def check_token(self, caller: Caller) -> None:
    """Raises RefusedError if a caller is of another run."""
    # What a stranger sends may be no text that can be encoded.
    token = caller.token.encode(errors='surrogatepass')
    if not hmac.compare_digest(token, self._token):
      raise RefusedError(
        f"{caller.name} must have the token of this run, got another run's."
      )

  def check(self, caller: Caller) -> None:
    """Admits a caller, and with it no earlier life of its own any more.

    Raises:
      RefusedError: If it is of another run or has been replaced.
    """
    self.check_token(caller)
    with self._lock:
      newest = self._lives.get(caller.name, 0)
      if caller.life < newest:
        raise RefusedError(
          f'{caller.name} was replaced: it must be in life {newest}, got life '
          f'{caller.life}.'
        )
      self._lives[caller.name] = caller.life
