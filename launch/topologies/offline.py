"""Offline RL: a learner and an evaluator on recorded data."""

import dataclasses

from repertory import components
from repertory.components.config import settings
from repertory.launch import experiments, nodes
from repertory.launch.coordination import kinds
from repertory.launch.topologies import topology


@topology.register
@dataclasses.dataclass(frozen=True)
class Offline(topology.Topology):
  """Offline RL: learns from data sets, without acting except in evaluations.

  The steps of a run are learner steps here.
  """

  name = 'offline'
  help = 'offline RL: learner and evaluator in one thread, without actors'
  rank = 6
  launch_types = ('local_mt',)
  can_be_deterministic = True

  data: tuple[str, ...] = settings.field(
    (),
    'folders of data sets, of --record, repertory record or Minari, combined '
    'into one; default: none.',
  )

  def sharding(self, experiment):
    return f'{self.name} on {", ".join(self.data)}'

  def transports(self, experiment):
    return [components.transports.OFFLINE]

  def check(self, experiment):
    is_list = isinstance(self.data, tuple)
    if not is_list or not all(
      isinstance(one, str) and one for one in self.data
    ):
      raise settings.SettingError(
        'data', f'must be a tuple of folders, got {self.data!r}.'
      )
    experiments.preflight.check_offline_settings(experiment, self.data)

  def check_experience(self, experiment, experience, spec):
    super().check_experience(experiment, experience, spec)
    experiments.preflight.check_offline(experiment, experience, spec, self.data)

  def run(self, session, launcher, interruption, show):
    """Learns from the data step by step, with evaluations in between."""
    with nodes.one_thread.supervised(session, interruption, show) as thread:
      learner = thread.make(
        kinds.LEARNER.name,
        lambda context: nodes.learner.OfflineLearnerNode(
          context, session, self.data
        ),
      )
      evaluator = thread.make_evaluator(learner)
      with thread.working(learner, evaluator):
        while thread.has_steps_left():
          with thread.named(learner):
            learner.step()
            thread.steps += 1
          thread.evaluate_if_due()
          thread.report_if_due()
    return thread.status
