"""Replay, actor, learner and evaluator in turn, in one thread."""

import dataclasses

from repertory import components
from repertory.launch import nodes
from repertory.launch.topologies import topology


@topology.register
@dataclasses.dataclass(frozen=True)
class Single(topology.Topology):
  """One actor drives the environments of all; the learner keeps in step."""

  name = 'single'
  help = 'replay, learner, evaluator and one actor in turn, in one thread'
  rank = 0
  launch_types = ('local_mt',)
  can_be_deterministic = True

  def road(self, experiment):
    # Reverb draws items by random numbers that cannot be seeded.
    if experiment.deterministic:
      return components.roads.LocalRoad.kind
    return super().road(experiment)

  def smallest_batch(self, experiment):
    return 1 if experiment.deterministic else None

  def run(self, session, stage):
    return nodes.actor_turns.ActorTurns(
      session, stage.title, stage.interruption, stage.show
    ).run()

  def graph(self, session):
    del session
    return topology.one_thread(nodes.actor_turns.CALLS)
