"""Distributed actors, learner, evaluator and replay server."""

import dataclasses
import functools

from repertory.launch import nodes
from repertory.launch.coordination import kinds
from repertory.launch.launchers import node_graph as node_graph_lib
from repertory.launch.topologies import bellman_updaters, parts, topology


@topology.register
@dataclasses.dataclass(frozen=True)
class Distributed(bellman_updaters.BellmanUpdaterTopology):
  """Distributed actors that fetch the policy's variables from the learner."""

  name = 'distributed'
  help = 'replay, learner, evaluator and actors in separate nodes'
  rank = 1

  def program(self, session, title):
    planned = parts.make_program(session, title)
    planned.add(
      node_graph_lib.PlannedNode(
        kinds.LEARNER.name,
        functools.partial(parts.make_learner, session=session),
        [kinds.REPLAY.name, kinds.COORDINATOR.name],
      )
    )
    parts.add_bellman_updaters(planned, session, self.num_bellman_updaters)
    planned.add(
      node_graph_lib.PlannedNode(
        kinds.EVALUATOR.name,
        functools.partial(_make_evaluator, session=session),
        [kinds.LEARNER.name, kinds.COORDINATOR.name],
      )
    )
    for index in range(session.experiment.num_actors):
      planned.add(
        node_graph_lib.PlannedNode(
          kinds.ACTOR.numbered(index),
          functools.partial(_make_actor, session=session, index=index),
          [kinds.REPLAY.name, kinds.LEARNER.name, kinds.COORDINATOR.name],
        )
      )
    return planned


def _make_actor(context, session, index):
  network, variable_client = parts.fetch(context, session)
  return nodes.actor.ActorNode(
    context,
    session,
    parts.environment_ids(session, index),
    network=network,
    variable_client=variable_client,
    transport=parts.connect(context, session),
  )


def _make_evaluator(context, session):
  if session.experiment.evaluation_episodes == 0:
    return nodes.evaluator.EvaluatorNode(context, session, None)
  network, variable_client = parts.fetch(context, session, update_period=1)
  evaluation = nodes.evaluator.make_evaluation(
    context, session, network, variable_client
  )
  return nodes.evaluator.EvaluatorNode(context, session, evaluation)
