"""One of several learners that mix: what it sends, hears and becomes."""

import dataclasses
import functools
import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from repertory.components import callers, interfaces, signals
from repertory.components.gossip import (
  graphs,
  inlet,
  mailbox,
  mixing,
  outlet,
  vectors,
)

# How long who is done waits until its neighbors have all that it sent.
_LAST_SECONDS = 5.0


class Figures(NamedTuple):
  """How a learner gossips.

  Attributes:
    trail: Its part of the bound of all distances, see `mixing.Trail`.
    num_messages: That have come.
    age_seconds: How long ago those came that were mixed last, on average; None
      before the first.
    age_steps: How many learner steps its own were ahead of theirs.
  """

  trail: float
  num_messages: int
  age_seconds: float | None
  age_steps: float | None


@dataclasses.dataclass(frozen=True)
class Neighborhood:
  """With whom a learner mixes, and how.

  Attributes:
    hears: Names of its in-neighbors, in the order in which they are mixed.
    tells: Names of its out-neighbors.
    weight: What each in-neighbor has in the mixture, see
      `graphs.neighbor_weight`.
    contraction: See `graphs.contraction`.
    keeps_step: Whether all mix at the same versions.
  """

  hears: Sequence[str]
  tells: Sequence[str]
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
    """Returns that of one of several learners in a graph.

    Args:
      graph: One of `choices.GRAPHS`.
      index: Which learner it is.
      names: Those of all.
      share: See `graphs.neighbor_weight`.
      keeps_step: Whether all mix at the same versions.
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
  """Sends neighbors what a learner has learned, and mixes in what they have.

  GALA's algorithm 1, lines 5 to 8: after an update, it sends its variables and
  then moves towards those that came. Other than there, it need not have heard
  from all of its neighbors: one that is gone keeps nobody from the others.

  Where all mix at the same versions, each waits for its neighbors' variables of
  that version instead, and nothing depends on who is faster.
  """

  def __init__(
    self,
    arrays: Mapping[str, np.ndarray],
    neighborhood: Neighborhood,
    *,
    find: Callable[[str], str | None],
    caller: callers.Caller,
    interface: interfaces.Interface = interfaces.LOOPBACK,
    timeout_seconds: float = 600.0,
    stop: signals.StopSignal | None = None,
    trail: float = 0.0,
  ):
    """Starts to listen, and to look for those that it tells.

    Args:
      arrays: What is learned, by name, as it is now.
      neighborhood: With whom it mixes, and how.
      find: Returns where one that it tells listens; None if that is not known.
      caller: Who it is.
      interface: Over what others reach it.
      timeout_seconds: How long it waits for a neighbor, where all keep step.
      stop: Ends that wait.
      trail: Its part of the bound so far: how far it is from the mean of all.
    """
    self._layout = vectors.Layout(arrays)
    self._mixed = self._layout.join(arrays)
    self._neighborhood = neighborhood
    self._trail = mixing.Trail(neighborhood.contraction, trail)
    self._timeout_seconds = timeout_seconds
    self._stop = stop or signals.StopSignal()
    keeps_step = neighborhood.keeps_step
    self._box = mailbox.Mailbox(neighborhood.hears, keeps_step)
    self._ages: tuple[float, float] | None = None
    self._inlet = inlet.Inlet(
      self._box, self._layout, callers.Admission(caller.token), interface
    )
    self._outlets = [
      outlet.Outlet(
        name, functools.partial(find, name), caller, self._layout, keeps_step
      )
      for name in neighborhood.tells
    ]

  @property
  def address(self) -> str:
    """Where its neighbors reach it."""
    return self._inlet.address

  def exchange(
    self, version: int, arrays: Mapping[str, np.ndarray]
  ) -> dict[str, np.ndarray] | None:
    """Sends what was learned, and returns what becomes of it.

    Args:
      version: Learner steps so far.
      arrays: What is learned, by name.

    Returns:
      Arrays by the same names; None if nothing has come.

    Raises:
      RefusedLinkError: If a neighbor does not take what is sent.
      signals.Stopped: If a wait was ended.
      TimeoutError: If a neighbor did not come to this version in time.
    """
    own = self._layout.join(arrays)
    self._trail.learn(float(np.linalg.norm(own - self._mixed)))
    for one in self._outlets:
      one.put(version, own)
    neighborhood = self._neighborhood
    if neighborhood.keeps_step:
      heard = self._box.wait_for(version, self._timeout_seconds, self._stop)
    else:
      heard = self._box.take_unread()
    self._mixed = own
    if not heard:
      return None
    vectors_heard = [one.vector for one in heard]
    self._mixed = mixing.mix(own, vectors_heard, neighborhood.weight)
    if len(heard) == len(neighborhood.hears):
      self._trail.contract()
    now = time.monotonic()
    self._ages = (
      sum(now - one.arrived_at for one in heard) / len(heard),
      sum(version - one.version for one in heard) / len(heard),
    )
    return self._layout.split(self._mixed, arrays)

  def figures(self) -> Figures:
    """Returns how it does; called in another thread."""
    ages = self._ages or (None, None)
    return Figures(self._trail.length, self._box.num_messages, *ages)

  def end(self, version: int) -> None:
    """Tells its neighbors that it sends nothing later than a version."""
    if not self._neighborhood.keeps_step:
      return  # Nobody waits for it.
    deadline = time.monotonic() + _LAST_SECONDS
    for one in self._outlets:
      one.end(version, max(0.0, deadline - time.monotonic()))

  def close(self) -> None:
    """Ends all links and threads."""
    for one in self._outlets:
      one.close()
    self._inlet.close()
