"""Variable cache for remote clients of a learner. Needs no TensorFlow."""

import pickle
import threading
from collections.abc import Callable, Hashable, Sequence
from typing import Any

from repertory.components import types


class VariableCache:
  """Variable cache: serializes variables once per version for all clients.

  All requests before the next learner step share one read. The answer is one
  byte string, since RPC takes several times as long for dozens of arrays.
  """

  def __init__(
    self,
    read: Callable[[Sequence[str]], Sequence[types.Nest]],
    age: Callable[[], Hashable],
  ):
    """Starts empty; `age` returns a key that changes with the variables."""
    self._read = read
    self._age = age
    self._lock = threading.Lock()
    # By names: version key before the read, and the packed variables.
    self._kept: dict[tuple[str, ...], tuple[Any, bytes]] = {}

  def get(self, names: Sequence[str]) -> bytes:
    """Returns one nest of arrays per name, for `unpack`."""
    key = tuple(names)
    with self._lock:  # Concurrent requests share this read.
      # Before the read: after a step in between, the next request reads again.
      age = self._age()
      kept = self._kept.get(key)
      if kept is None or kept[0] != age:
        packed = pickle.dumps(self._read(names), pickle.HIGHEST_PROTOCOL)
        kept = self._kept[key] = age, packed
      return kept[1]


def unpack(packed: bytes) -> list[types.Nest]:
  """Decodes the result of `VariableCache.get`."""
  return pickle.loads(packed)
