"""Gossip of one learner: sending, receiving and mixing variables."""

import functools
import time
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from repertory.components.gossip import links, mixing
from repertory.components.runtime import callers, network_interfaces


class Participant:
  """Sends a learner's variables to its neighbors, and mixes in theirs.

  GALA's algorithm 1, lines 5 to 8: after an update, it sends its variables and
  then moves towards those received. Unlike there, it need not have received
  from all of its neighbors, so a lost one blocks nobody.

  Attributes:
    age_seconds: Mean age of the last mixed messages; None before the first.
    age_steps: Mean lead of its learner steps over theirs.
  """

  age_seconds: float | None = None
  age_steps: float | None = None

  def __init__(
    self,
    arrays: Mapping[str, np.ndarray],
    graph: str,
    names: Sequence[str],
    *,
    find: Callable[[str], str | None],
    caller: callers.Caller,
    share: float | None = None,
    interface: network_interfaces.Interface = network_interfaces.LOOPBACK,
  ):
    """Starts to listen, and to connect to its out-neighbors.

    Args:
      arrays: The learner's variables, by name.
      graph: One of `choices.GRAPHS`.
      names: Names of all learners, in the order of the graph.
      find: Returns an out-neighbor's address; None if it is not known.
      caller: Identity of this learner, one of the names.
      share: See `mixing.neighbor_weight`.
      interface: Network interface to listen on.
    """
    index, size = names.index(caller.name), len(names)
    self._weight = mixing.neighbor_weight(graph, size, share)
    neighbors = [names[i] for i in mixing.in_neighbors(graph, size, index)]
    self._inlet = links.Inlet(
      neighbors, mixing.join(arrays), callers.Fencing(caller.token), interface
    )
    self._outlets = [
      links.Outlet(names[i], functools.partial(find, names[i]), caller)
      for i in mixing.out_neighbors(graph, size, index)
    ]

  @property
  def address(self) -> str:
    """The address for its in-neighbors."""
    return self._inlet.address

  @property
  def num_messages(self) -> int:
    """Number of messages received."""
    return self._inlet.num_messages

  def exchange(
    self, version: int, arrays: Mapping[str, np.ndarray]
  ) -> dict[str, np.ndarray] | None:
    """Sends the variables, and returns them mixed.

    Args:
      version: Learner steps so far.
      arrays: The learner's variables, by name.

    Returns:
      Arrays by the same names; None if no messages have come.
    """
    own = mixing.join(arrays)
    for one in self._outlets:
      one.put(version, own)
    received = self._inlet.take_unread()
    if not received:
      return None
    now, count = time.monotonic(), len(received)
    self.age_seconds = sum(now - one.arrived_at for one in received) / count
    self.age_steps = sum(version - one.version for one in received) / count
    mixed = mixing.mix(own, [one.vector for one in received], self._weight)
    return mixing.split(mixed, arrays)

  def close(self) -> None:
    """Closes all links and threads."""
    for one in self._outlets:
      one.close()
    self._inlet.close()
