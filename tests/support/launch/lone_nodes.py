"""Nodes without a launcher."""

import sys

from repertory.components import variables
from repertory.components.runtime import signals
from repertory.launch.nodes import actor, node


def make_context(name, coordinator, stop=None, **settings) -> node.Context:
  """Makes the context of a node."""
  return node.Context(
    name, coordinator, {}, stop or signals.StopSignal(), **settings
  )


def make_actor(
  session, transport, learner, coordinator, environment_ids=(0,), **settings
) -> actor.ActorNode:
  """Makes an actor that shares variables with a learner in this thread."""
  return actor.ActorNode(
    make_context('actor/0', coordinator, transport.place.stop, **settings),
    session,
    list(environment_ids),
    network=learner.network,
    variable_client=variables.SharedVariableClient(learner),
    transport=transport,
    max_pending_items=sys.maxsize,
  )
