"""Distributed actors, learner, evaluator and replay server."""

import dataclasses

from repertory.launch import nodes
from repertory.launch.coordination import kinds
from repertory.launch.topologies import parts, replay_settings, topology


@topology.register
@dataclasses.dataclass(frozen=True)
class Distributed(replay_settings.BellmanUpdaterTopology):
  """Distributed actors that fetch the policy's variables from the learner."""

  name = 'distributed'
  help = 'replay, learner, evaluator and actors in separate nodes'
  rank = 1

  def program(self, session):
    planned = parts.make_program(session)
    session = session.without_callbacks()
    coordinator, learner = kinds.COORDINATOR.name, kinds.LEARNER.name
    calls = [kinds.REPLAY.name, coordinator]
    planned.plan(learner, parts.make_learner, calls, session=session)
    self.add_bellman_updaters(planned, session)
    calls = [learner, coordinator]
    planned.plan(
      kinds.EVALUATOR.name, parts.make_evaluator, calls, session=session
    )
    calls = [kinds.REPLAY.name, learner, coordinator]
    for index in range(session.experiment.num_actors):
      name = kinds.ACTOR.numbered(index)
      planned.plan(name, _make_actor, calls, session=session, index=index)
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
