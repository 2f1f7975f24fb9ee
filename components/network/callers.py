"""Caller identity, and fencing of replaced processes by generation.

A process that cannot be reached is replaced, though it may still be running,
for example behind a network partition. When it returns, its calls are refused.
Needs no TensorFlow.
"""

import hmac
import threading
from typing import NamedTuple


class Caller(NamedTuple):
  """Name, generation (starts before) and the run's token of a caller."""

  name: str
  generation: int = 0
  token: str = ''


class FencedError(ConnectionError):
  """The caller belongs to another run, or has been replaced."""


class Fencing:
  """Admits callers of a run, each only in its newest generation."""

  def __init__(self, token: str = ''):
    self._token = token.encode()
    self._generations: dict[str, int] = {}
    self._lock = threading.Lock()

  def replace(self, name: str, generation: int) -> None:
    """Registers a new generation of a caller; older ones are refused."""
    with self._lock:
      self._generations[name] = max(generation, self._generations.get(name, 0))

  def check_token(self, caller: Caller) -> None:
    """Raises FencedError if a caller belongs to another run."""
    # An unknown sender's token may not be encodable text.
    token = caller.token.encode(errors='surrogatepass')
    if not hmac.compare_digest(token, self._token):
      raise FencedError(
        f"{caller.name} must have the token of this run, got another run's."
      )

  def check(self, caller: Caller) -> None:
    """Admits a caller, and refuses its older generations from now on.

    Raises:
      FencedError: If it belongs to another run or has been replaced.
    """
    self.check_token(caller)
    with self._lock:
      newest = self._generations.get(caller.name, 0)
      if caller.generation < newest:
        raise FencedError(
          f'{caller.name} was replaced: its generation must be {newest}, got '
          f'{caller.generation}.'
        )
      self._generations[caller.name] = caller.generation
