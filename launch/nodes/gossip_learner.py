"""Gossip learner: averages its parameters with its neighbors."""

import contextlib
from collections.abc import Callable, Mapping

from repertory.components import gossip, replay, transports
from repertory.components.runtime import callers, network_interfaces
from repertory.launch.nodes import (
  checkpoints,
  gossip_means,
  gossip_messages,
  learner,
  node,
)
from repertory.launch.opening import session as session_lib


class GossipLearnerNode(learner.LearnerNode):
  """Learner that mixes parameters with its neighbors between updates."""

  def __init__(
    self,
    context: node.Context,
    session: session_lib.Session,
    transport: transports.Transport,
    beginning: gossip_messages.LearnerStart,
    mix_period: int,
  ):
    """Makes the learner. `join` must follow, unless it is the only one.

    Args:
      session: Session of the learner.
      transport: Transport of experience.
      beginning: Initial state; its checkpoint has been unpacked already.
      mix_period: Learner steps between mixings.
    """
    super().__init__(context, session, transport)
    learned = gossip_means.unpack(beginning.learned)
    if beginning.whole:
      whole = gossip_means.unpack(beginning.whole)
      steps = beginning.counts['learner_steps']
      self.learner.restore(gossip_means.with_steps(whole, steps))
      self._end.begin(self.version)
    if beginning.takes_learned:
      self.learner.begin_with(learned)
    self._mean_at_start = learned
    self._mix_period = mix_period
    self._participant: gossip.Participant | None = None

  def join(
    self,
    neighborhood: gossip.Neighborhood,
    find: Callable[[str], str | None],
    caller: callers.Caller,
    interface: network_interfaces.Interface,
  ) -> None:
    """Connects it to its neighbors.

    Args:
      neighborhood: Neighbors and mixing weights.
      find: Returns the address of a node; None if unknown.
      caller: Caller identity of this node.
      interface: Network interface of its server.
    """
    arrays = self.learner.get_learned()
    self._participant = gossip.Participant(
      arrays,
      neighborhood,
      find=find,
      caller=caller,
      interface=interface,
      timeout_seconds=self._session.experiment.timeout_seconds,
      stop=self._stop,
      trail=gossip_means.distance(arrays, self._mean_at_start),
    )

  @property
  def address(self) -> str | None:
    """Address for its neighbors; None without any."""
    return self._participant.address if self._participant else None

  @property
  def figures(self) -> gossip.Figures | None:
    """Gossip figures; None without neighbors."""
    return self._participant.figures() if self._participant else None

  @property
  def tables(self) -> Mapping[str, replay.TableInfo]:
    """Status of its tables, by name."""
    return self._end.statuses()

  def step(self) -> None:
    before = self.version
    super().step()
    period = self._mix_period
    if self._participant is None or before // period == self.version // period:
      return
    mixed = self._participant.exchange(self.version, self.learner.get_learned())
    if mixed is not None:
      self.learner.begin_with(mixed)

  @property
  def checkpoint_writer(self) -> checkpoints.CheckpointWriter:
    """Writer of its checkpoints."""
    return self._checkpoints

  def end(self) -> None:
    """Flushes the logs, and notifies neighbors of its end."""
    self._logger.flush()
    if self._participant is not None:
      self._participant.end(self.version)

  def close(self) -> None:
    with contextlib.ExitStack() as stack:  # Close all, even if one fails.
      stack.callback(super().close)
      if self._participant is not None:
        stack.callback(self._participant.close)
