"""Gossip of one learner: sending, receiving and mixing variables."""

import dataclasses
import functools
import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from repertory.components.gossip import (
  graphs,
  inlet,
  mailbox,
  mixing,
  outlet,
  vectors,
)
from repertory.components.runtime import callers, network_interfaces, signals

# Time a finished learner waits until its messages are sent.
_LAST_SECONDS = 5.0


class Figures(NamedTuple):
  """Gossip metrics of a learner.

  Attributes:
    trail: Its part of the distance bound, see `mixing.Trail`.
    num_messages: Number of messages received.
    age_seconds: Mean age of the last mixed messages; None before the first.
    age_steps: Mean lead of its learner steps over theirs.
  """

  trail: float
  num_messages: int
  age_seconds: float | None
  age_steps: float | None


@dataclasses.dataclass(frozen=True)
class Neighborhood:
  """A learner's neighbors and mixing settings.

  Attributes:
    in_neighbors: Names of its in-neighbors, in mixing order.
    out_neighbors: Names of its out-neighbors.
    weight: Mixing weight of each in-neighbor, see `graphs.neighbor_weight`.
    contraction: See `graphs.contraction`.
    keeps_step: Whether mixing is synchronous: all mix at the same versions.
  """

  in_neighbors: Sequence[str]
  out_neighbors: Sequence[str]
  weight: float
  contraction: float
  keeps_step: bool = False

  @classmethod
  def of(
    cls,
    graph: str,
    index: int,
    names: Sequence[str],
    share: float | None = None,
    keeps_step: bool = False,
  ) -> 'Neighborhood':
    """Returns the neighborhood of a learner in a graph.

    Args:
      graph: One of `choices.GRAPHS`.
      index: Index of the learner.
      names: Names of all learners.
      share: See `graphs.neighbor_weight`.
      keeps_step: Whether mixing is synchronous.
    """
    size = len(names)
    return cls(
      [names[i] for i in graphs.in_neighbors(graph, size, index)],
      [names[i] for i in graphs.out_neighbors(graph, size, index)],
      graphs.neighbor_weight(graph, size, share),
      graphs.contraction(graph, size, share),
      keeps_step,
    )


class Participant:
  """Sends a learner's variables to its neighbors, and mixes in theirs.

  GALA's algorithm 1, lines 5 to 8: after an update, it sends its variables and
  then moves towards those received. Unlike there, it need not have received
  from all of its neighbors, so a lost one blocks nobody.

  If mixing is synchronous, each learner waits for its neighbors' variables of
  the same version instead, and results do not depend on timing.
  """

  def __init__(
    self,
    arrays: Mapping[str, np.ndarray],
    neighborhood: Neighborhood,
    *,
    find: Callable[[str], str | None],
    caller: callers.Caller,
    interface: network_interfaces.Interface = network_interfaces.LOOPBACK,
    timeout_seconds: float = 600.0,
    stop: signals.StopSignal | None = None,
    trail: float = 0.0,
  ):
    """Starts to listen, and to connect to its out-neighbors.

    Args:
      arrays: The learner's variables, by name.
      neighborhood: Its neighbors and mixing settings.
      find: Returns an out-neighbor's address; None if it is not known.
      caller: Identity of this learner.
      interface: Network interface to listen on.
      timeout_seconds: Time limit for a neighbor, if mixing is synchronous.
      stop: Ends that wait.
      trail: Its part of the distance bound so far.
    """
    self._layout = vectors.VectorLayout(arrays)
    self._mixed = self._layout.join(arrays)
    self._neighborhood = neighborhood
    self._trail = mixing.Trail(neighborhood.contraction, trail)
    self._timeout_seconds = timeout_seconds
    self._stop = stop or signals.StopSignal()
    keeps_step = neighborhood.keeps_step
    self._box = mailbox.Mailbox(neighborhood.in_neighbors, keeps_step)
    self._ages: tuple[float, float] | None = None
    self._inlet = inlet.Inlet(
      self._box, self._layout, callers.Fencing(caller.token), interface
    )
    self._outlets = [
      outlet.Outlet(
        name, functools.partial(find, name), caller, self._layout, keeps_step
      )
      for name in neighborhood.out_neighbors
    ]

  @property
  def address(self) -> str:
    """The address for its in-neighbors."""
    return self._inlet.address

  def exchange(
    self, version: int, arrays: Mapping[str, np.ndarray]
  ) -> dict[str, np.ndarray] | None:
    """Sends the variables, and returns them mixed.

    Args:
      version: Learner steps so far.
      arrays: The learner's variables, by name.

    Returns:
      Arrays by the same names; None if no messages have come.

    Raises:
      RefusedLinkError: If a neighbor refuses the link.
      signals.Stopped: If a wait was stopped.
      TimeoutError: If a neighbor did not reach this version in time.
    """
    own = self._layout.join(arrays)
    self._trail.learn(float(np.linalg.norm(own - self._mixed)))
    for one in self._outlets:
      one.put(version, own)
    neighborhood = self._neighborhood
    if neighborhood.keeps_step:
      received = self._box.wait_for(version, self._timeout_seconds, self._stop)
    else:
      received = self._box.take_unread()
    self._mixed = own
    if not received:
      return None
    received_vectors = [one.vector for one in received]
    self._mixed = mixing.mix(own, received_vectors, neighborhood.weight)
    if len(received) == len(neighborhood.in_neighbors):
      self._trail.contract()
    now = time.monotonic()
    self._ages = (
      sum(now - one.arrived_at for one in received) / len(received),
      sum(version - one.version for one in received) / len(received),
    )
    return self._layout.split(self._mixed, arrays)

  def figures(self) -> Figures:
    """Returns gossip metrics; may be called in another thread."""
    ages = self._ages or (None, None)
    return Figures(self._trail.length, self._box.num_messages, *ages)

  def end(self, version: int) -> None:
    """Notifies its neighbors that it sends nothing after a version."""
    if not self._neighborhood.keeps_step:
      return  # No neighbor waits for it.
    deadline = time.monotonic() + _LAST_SECONDS
    for one in self._outlets:
      one.end(version, max(0.0, deadline - time.monotonic()))

  def close(self) -> None:
    """Closes all links and threads."""
    for one in self._outlets:
      one.close()
    self._inlet.close()
