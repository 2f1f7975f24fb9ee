"""Replay, actor, learner and evaluator in turn, in one thread."""

import dataclasses

from repertory import components
from repertory.components import settings
from repertory.launch import nodes
from repertory.launch.topologies import topology


@topology.register
@dataclasses.dataclass(frozen=True)
class Single(topology.Topology):
  """One actor drives the environments of all; the learner keeps in step.

  Attributes:
    replay_server: Whether a Reverb server keeps replay, as in topologies of
      several nodes. Else a table of this process does, which is several times
      as fast, unless it cannot do what the agent wants, or may need more than
      half of the memory where a server needs less.
  """

  name = 'single'
  help = 'replay, learner, evaluator and one actor in turn, in one thread'
  rank = 0
  launch_types = ('local_mt',)
  can_be_deterministic = True
  can_be_eager = True
  has_bellman_updaters = True

  replay_server: bool = settings.field(
    False,
    'keep replay in a Reverb server, as other topologies do, and not in the '
    'memory of the process, which is faster.',
  )

  def check(self, experiment):
    if self.replay_server and experiment.deterministic:
      raise settings.SettingError(
        'replay_server',
        'must be false with deterministic, for a server draws items by random '
        'numbers that cannot be seeded; got true.',
      )

  def roads(self, experiment):
    local, server = components.roads.LocalRoad.kind, super().roads(experiment)
    if experiment.deterministic:
      return [local]
    return server if self.replay_server else [local, *server]

  def run(self, session, stage):
    with components.compilation.eagerly(session.experiment.eager):
      return nodes.actor_turns.ActorTurns(
        session, stage.title, stage.interruption, stage.show
      ).run()

  def call_graph(self, session):
    return topology.one_thread(
      nodes.actor_turns.calls(session.road, session.experience)
    )
