"""Anakin: environments, policy and update in one compiled loop."""

import dataclasses

from repertory import components
from repertory.components.config import settings
from repertory.components.runtime import devices
from repertory.launch import nodes
from repertory.launch.coordination import kinds
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
    nodes.compiled.check(experiment)

  def check_experience(self, experiment, experience, spec):
    super().check_experience(experiment, experience, spec)
    nodes.compiled.check_experience(experiment, experience)

  def run(self, session, launcher, interruption, show):
    """Calls the compiled loop, with evaluations in between."""
    with (
      learner_devices.on_devices(self.learner_devices),
      nodes.one_thread.supervised(session, interruption, show) as thread,
    ):
      learner = thread.make(
        kinds.LEARNER.name,
        lambda context: nodes.anakin.AnakinNode(context, session),
      )
      evaluator = thread.make_evaluator(learner)
      with thread.working(learner, evaluator):
        while thread.has_steps_left():
          next_stop = min(thread.max_steps, evaluator.next_at)
          with thread.named(learner):
            thread.steps += learner.advance(next_stop - thread.steps)
          thread.evaluate_if_due()
          thread.report_if_due()
    return thread.status

  def call_graph(self, session):
    del session
    return topology.one_thread(topology.LEARNER_AND_EVALUATOR)
