"""Mailbox for neighbors' variables until they are mixed."""

import dataclasses
import threading
import time
from collections.abc import Callable, Sequence

import numpy as np

from repertory.components.runtime import signals


@dataclasses.dataclass(frozen=True)
class Message:
  """A neighbor's variables at one of its learner steps.

  Attributes:
    version: Its learner steps.
    vector: Its variables, `[P]`; see `vectors.VectorLayout`.
    arrived_at: Local time of arrival, in seconds.
  """

  version: int
  vector: np.ndarray
  arrived_at: float


class Mailbox:
  """Collects messages from receiver threads; keeps the newest per neighbor.

  In synchronous mode, it keeps all until they are mixed.
  """

  def __init__(
    self,
    neighbors: Sequence[str],
    keeps_all: bool = False,
    clock: Callable[[], float] = time.monotonic,
  ):
    """Starts empty.

    Args:
      neighbors: Names of the senders.
      keeps_all: Whether messages are taken by version, see `wait_for`.
      clock: Returns seconds.
    """
    self._neighbors = list(neighbors)
    self._keeps_all = keeps_all
    self._clock = clock
    self._unread: dict[str, Message] = {}
    self._kept: dict[str, dict[int, Message]] = {n: {} for n in neighbors}
    self._ends: dict[str, int] = {}
    self._num_messages = 0
    self._has_come = threading.Condition()

  @property
  def num_messages(self) -> int:
    """Number of messages received so far."""
    with self._has_come:
      return self._num_messages

  def check(self, neighbor: str) -> None:
    """Raises ValueError if a name is not that of a neighbor."""
    if neighbor not in self._kept:
      raise ValueError(
        f'neighbor must be one of {self._neighbors}, got {neighbor!r}.'
      )

  def put(self, neighbor: str, version: int, vector: np.ndarray) -> None:
    """Adds a message.

    Args:
      neighbor: Name of the sender.
      version: The neighbor's learner steps.
      vector: `[P]`; stored without a copy.

    Raises:
      ValueError: If it is not from a neighbor.
    """
    message = Message(version, vector, self._clock())
    self.check(neighbor)
    with self._has_come:
      self._num_messages += 1
      if self._keeps_all:
        self._kept[neighbor][version] = message
      else:
        self._unread[neighbor] = message
      self._has_come.notify_all()

  def end(self, neighbor: str, version: int) -> None:
    """Records that a neighbor sends nothing after a version."""
    self.check(neighbor)
    with self._has_come:
      self._ends[neighbor] = version
      self._has_come.notify_all()

  def take_unread(self) -> list[Message]:
    """Returns the newest unread message of each neighbor, if any.

    In the order of the neighbors.
    """
    with self._has_come:
      unread, self._unread = self._unread, {}
    return [unread[name] for name in self._neighbors if name in unread]

  def wait_for(
    self, version: int, timeout_seconds: float, stop: signals.StopSignal
  ) -> list[Message]:
    """Waits until all neighbors that reach a version have sent it.

    Returns:
      Their messages, in the order of the neighbors, without those that ended
      earlier.

    Raises:
      signals.Stopped: If the stop signal was set.
      TimeoutError: If a message did not come in time; names the neighbors.
    """
    signals.wait_for(
      lambda seconds: self._wait(version, seconds),
      lambda: (
        f'{", ".join(self._missing(version))} to reach learner step {version}'
      ),
      timeout_seconds,
      stop,
    )
    with self._has_come:
      found = [self._kept[name].pop(version, None) for name in self._neighbors]
      for kept in self._kept.values():
        for old in [number for number in kept if number < version]:
          del kept[old]
    return [message for message in found if message is not None]

  def _wait(self, version: int, seconds: float) -> bool:
    with self._has_come:
      return self._has_come.wait_for(
        lambda: not self._missing(version), seconds
      )

  def _missing(self, version: int) -> list[str]:
    """Returns neighbors that neither sent a version nor ended before it."""
    return [
      name
      for name in self._neighbors
      if version not in self._kept[name]
      and self._ends.get(name, version) >= version
    ]
