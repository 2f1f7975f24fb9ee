"""A learner in one process with those who act for it."""

import contextlib
from typing import Any

from repertory.components import roads, variables
from repertory.components.replay import local
from repertory.launch.coordination import kinds, starts
from repertory.launch.nodes import learner as learner_lib
from repertory.launch.nodes import node
from repertory.launch.runs import session as session_lib


class LocalLearner:
  """Where nodes of one process, in threads of their own, find the learner.

  Items go to it, and variables come from it, in memory. Whoever looks for it
  before it is made waits. It is for one launch of a program; each node's own
  stop signal ends its waits, so that who failed stops nobody else before the
  coordinator does.
  """

  def __init__(self, session: session_lib.Session, num_actors: int):
    """Makes nothing yet.

    Args:
      num_actors: Nodes that are to act.
    """
    self._session = session
    experience = session.experience
    takes_turns = (
      experience.table.is_queue and experience.items.slots_end_together
    )
    self._num_turns = num_actors if takes_turns else None
    self._made: tuple[learner_lib.LearnerNode, roads.LocalRoad] | None = None

  def make(self, context: node.Context) -> learner_lib.LearnerNode:
    """Makes the learner, in its own thread, and lets others find it."""
    road = self._session.make_local_road(context.stop, self._num_turns)
    with contextlib.ExitStack() as unless_made:
      learner = learner_lib.LearnerNode(context, self._session, road)
      unless_made.callback(learner.close)
      # Now, for nobody may read the variables while the learner writes to them.
      learner.publisher  # noqa: B018
      unless_made.pop_all()
    self._made = learner, road
    return learner

  def follow(
    self, context: node.Context
  ) -> tuple[Any, variables.PublishedVariables]:
    """Makes a network whose variables are those that the learner publishes.

    Returns:
      The network, and what keeps it fresh.

    Raises:
      signals.Stopped: If the run stops before the learner is made.
      TimeoutError: If the learner was not made in time.
    """
    learner, _ = self._find(context)
    # Not before the learner's own: they draw from the same random numbers.
    network = self._session.experiment.builder.make_network(self._session.spec)
    return network, variables.PublishedVariables(
      learner.publisher, network.variables
    )

  def find_road(self, context: node.Context, index: int) -> roads.LocalRoad:
    """Returns the road to the learner, for an actor.

    If unrolls of all environments end together, actors put theirs in turn: so
    none is further ahead of the slowest than by what may be on its way.

    Args:
      index: Which of those that act it is.

    Raises:
      signals.Stopped: If the run stops before the learner is made.
      TimeoutError: If the learner was not made in time.
    """
    _, road = self._find(context)
    timeout_seconds = self._session.experiment.timeout_seconds
    road = road.at(local.Place(timeout_seconds, context.stop))
    return road if self._num_turns is None else road.in_turn(index)

  def _find(
    self, context: node.Context
  ) -> tuple[learner_lib.LearnerNode, roads.LocalRoad]:
    return starts.wait_for(
      lambda: self._made,
      f"node '{kinds.LEARNER.name}' to be made",
      coordinator=context.coordinator,
      asks=context.name,
      timeout_seconds=self._session.experiment.timeout_seconds,
      stop=context.stop,
    )
