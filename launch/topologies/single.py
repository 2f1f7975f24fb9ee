"""Single-threaded replay, actor, learner and evaluator."""

import dataclasses

from repertory import components
from repertory.components.config import settings
from repertory.launch import nodes
from repertory.launch.topologies import topology


@topology.register
@dataclasses.dataclass(frozen=True)
class Single(topology.Topology):
  """One actor steps all environments, alternating with the learner.

  Attributes:
    replay_server: Whether replay is in a Reverb server, as in topologies with
      several nodes. Otherwise it is a table in this process, several times as
      fast; except if that lacks a feature the agent needs, or may take more
      than half of the memory and a server would take less.
  """

  name = 'single'
  help = 'replay, learner, evaluator and one actor in one thread'
  rank = 0
  launch_types = ('local_mt',)
  can_be_deterministic = True
  can_be_eager = True
  has_bellman_updaters = True

  replay_server: bool = settings.field(
    False,
    'keep replay in a Reverb server, as in other topologies, instead of '
    "the process's memory, which is faster.",
  )

  def check(self, experiment):
    if self.replay_server and experiment.deterministic:
      raise settings.SettingError(
        'replay_server',
        'must be false with deterministic, since the sampling of a server '
        'cannot be seeded; got true.',
      )

  def transports(self, experiment):
    local, server = (
      components.transports.InProcessTransport.kind,
      super().transports(experiment),
    )
    if experiment.deterministic:
      return [local]
    return server if self.replay_server else [local, *server]

  def run(self, session, stage):
    with components.runtime.compilation.eagerly(session.experiment.eager):
      return nodes.single_loop.SingleLoop(
        session, stage.title, stage.interruption, stage.show
      ).run()

  def call_graph(self, session):
    return topology.one_thread(
      nodes.single_loop.calls(session.transport, session.experience)
    )
