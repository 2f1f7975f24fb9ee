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
    replay, learner = kinds.REPLAY.name, kinds.LEARNER.name
    planned.plan(learner, parts.make_learner, [replay], session=session)
    self.add_bellman_updaters(planned, session)
    planned.plan(
      kinds.EVALUATOR.name, parts.make_evaluator, [learner], session=session
    )
    for index in range(session.experiment.num_actors):
      name = kinds.ACTOR.numbered(index)
      planned.plan(
        name, _make_actor, [replay, learner], session=session, index=index
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
