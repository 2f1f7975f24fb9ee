"""Nodes that no launcher hosts."""

import sys

from repertory.components import signals, variables
from repertory.launch.nodes import actor, node


def make_context(name, coordinator, stop=None, life=0) -> node.Context:
  """Makes what a node finds when it is made."""
  stop = stop or signals.StopSignal()
  return node.Context(name, coordinator, {}, stop, life)


def make_actor(
  session, connection, learner, coordinator, environment_ids=(0,)
) -> actor.ActorNode:
  """Makes an actor that shares the variables of a learner of this thread."""
  return actor.ActorNode(
    make_context('actor/0', coordinator, connection.stop),
    session,
    list(environment_ids),
    network=learner.network,
    followed=variables.SharedVariables(learner),
    road=session.make_road(connection),
    max_pending_items=sys.maxsize,
  )
