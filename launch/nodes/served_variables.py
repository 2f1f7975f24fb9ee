"""A learner's variables, as others elsewhere get them; needs no TensorFlow."""

import pickle
import threading
from collections.abc import Callable, Hashable, Sequence
from typing import Any

from repertory.components import types


class ServedVariables:
  """Answers many who ask for the same variables.

  What is read once is given to all who ask before the next learner step. And it
  is given in one piece: what carries calls takes several times as long for
  arrays one by one, of which a network has dozens.
  """

  def __init__(
    self,
    read: Callable[[Sequence[str]], Sequence[types.Nest]],
    age: Callable[[], Hashable],
  ):
    """Has read nothing yet.

    Args:
      read: Returns variables by name.
      age: Tells how old they are: another value whenever they are others.
    """
    self._read = read
    self._age = age
    self._lock = threading.Lock()
    # By names: the age before they were read, and what was.
    self._kept: dict[tuple[str, ...], tuple[Any, bytes]] = {}

  def get(self, names: Sequence[str]) -> bytes:
    """Returns one nest of arrays per name, for `unpack`.

    Raises:
      KeyError: If a name is unknown.
    """
    key = tuple(names)
    with self._lock:  # Who comes meanwhile takes what this one has read.
      # First: should a step come in between, the next one reads again.
      age = self._age()
      kept = self._kept.get(key)
      if kept is None or kept[0] != age:
        packed = pickle.dumps(self._read(names), pickle.HIGHEST_PROTOCOL)
        kept = self._kept[key] = age, packed
      return kept[1]


def unpack(packed: bytes) -> list[types.Nest]:
  """Returns what `ServedVariables.get` was asked for."""
  return pickle.loads(packed)
