"""Anakin: environments, policy and update in one compiled loop."""

import dataclasses

from repertory import components
from repertory.components.runtime import devices
from repertory.launch import nodes
from repertory.launch.coordination import kinds
from repertory.launch.topologies import device_settings, topology


@topology.register
@dataclasses.dataclass(frozen=True)
class Anakin(device_settings.LearnerDevicesTopology):
  """Podracer's Anakin: https://arxiv.org/abs/2104.06272."""

  name = 'anakin'
  help = 'tensor environments, policy and update in one compiled loop'
  rank = 3
  launch_types = ('local_mt',)
  can_be_deterministic = True

  def transports(self, experiment):
    return [components.transports.COMPILED]

  def check(self, experiment):
    super().check(experiment)
    # Here, since virtual CPU devices must be set up before TensorFlow is used.
    devices.prepare('learner_devices', self.learner_devices)
    nodes.anakin.check(experiment)

  def check_experience(self, experiment, experience, spec):
    super().check_experience(experiment, experience, spec)
    nodes.anakin.check_experience(experiment, experience)

  def run(self, session, launcher, interruption, show):
    """Calls the compiled loop, with evaluations in between."""
    with (
      self.on_learner_devices(),
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
