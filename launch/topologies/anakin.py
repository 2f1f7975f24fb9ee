"""Anakin: environments, policy and update in one compiled loop."""

import dataclasses

from repertory import components
from repertory.components.config import settings
from repertory.components.runtime import devices
from repertory.launch import nodes, opening
from repertory.launch.topologies import learner_devices, topology


@topology.register
@dataclasses.dataclass(frozen=True)
class Anakin(topology.Topology):
  """Podracer's Anakin: https://arxiv.org/abs/2104.06272.

  Attributes:
    learner_devices: Devices of the compiled loop; with several, batch rows are
      sharded for its networks, and the rest is on the first. Empty for
      TensorFlow's choice.
  """

  name = 'anakin'
  help = 'tensor environments, policy and update in one compiled loop'
  rank = 3
  launch_types = ('local_mt',)
  can_be_deterministic = True

  learner_devices: tuple[str, ...] = settings.field(
    (),
    'devices of the loop; several shard the batch rows of its networks; '
    "default: TensorFlow's choice.",
  )

  def __post_init__(self):
    learner_devices.check(self.learner_devices)

  def transports(self, experiment):
    return [components.transports.COMPILED]

  def check(self, experiment):
    learner_devices.check_dividing(self.learner_devices, experiment)
    # Here, since virtual CPU devices must be set up before TensorFlow is used.
    devices.prepare('learner_devices', self.learner_devices)
    opening.compiled.check(experiment)

  def check_experience(self, experiment, experience, spec):
    super().check_experience(experiment, experience, spec)
    opening.compiled.check_experience(experiment, experience)

  def run(self, session, stage):
    with learner_devices.on_devices(self.learner_devices):
      return nodes.anakin_loop.AnakinLoop(
        session, stage.title, stage.interruption, stage.show
      ).run()

  def call_graph(self, session):
    del session
    return topology.one_thread(nodes.run_loop.CALLS)
