"""Test of a topology that is no combination of ours, in a file of its own."""

import dataclasses

import numpy as np

from repertory.components import variables
from repertory.components.config import settings
from repertory.launch.nodes import actor, learner, one_thread
from repertory.launch.opening import conformance
from repertory.launch.topologies import topology


class PairLearner(learner.LearnerNode):
  """Learner that exchanges a number with another one after each step.

  Both set the first weight of their last layer to its mean.
  """

  other = None

  def step(self):
    super().step()
    if self.other is not None:
      weights = [one.network.variables[-1] for one in (self, self.other)]
      values = [one.numpy() for one in weights]
      mean = np.mean([one.flat[0] for one in values])
      for one, value in zip(weights, values):
        value.flat[0] = mean
        one.assign(value)


@dataclasses.dataclass(frozen=True)
class Pair(topology.Topology):
  """Two actors and two learners that exchange a number each step."""

  name = 'pair'
  help = 'two actors and two learners, which exchange a number each step'
  launch_types = ('local_mt',)

  def check(self, experiment):
    if experiment.checkpoint_replay:
      raise settings.SettingError(
        'checkpoint_replay', 'must be false: a checkpoint has one table.'
      )

  def transports(self, experiment):
    return ['local']

  def run(self, session, launcher, interruption, show):
    learners, actors = [], []
    with one_thread.supervised(session, interruption, show) as thread:
      for index in range(2):
        transport = session.make_in_process_transport(interruption)
        one = thread.make(
          f'learner/{index}',
          lambda context, end=transport.learned: PairLearner(
            context, session, end
          ),
        )
        learners.append(one)
        half = session.experiment.num_environments // 2
        ids = range(index * half, (index + 1) * half)
        actors.append(
          thread.make(
            f'actor/{index}',
            lambda context, ids=ids, one=one, end=transport: actor.ActorNode(
              context, session, ids, network=one.network, transport=end,
              variable_client=variables.SharedVariableClient(one),
            ),
          )
        )  # fmt: skip
      learners[0].other, learners[1].other = learners[1], learners[0]
      evaluator = thread.make_evaluator(learners[0])
      with thread.working(learners[0], evaluator, actors):
        while thread.has_steps_left():
          for one, source in zip(learners, actors):
            with thread.named(source):
              thread.steps += source.step()
            with thread.named(one):
              one.catch_up(source.num_items, source.flush)
          thread.evaluate_if_due()
          thread.report_if_due()
      self.exchanged.append([one.network.variables[-1] for one in learners])
    return thread.status

  def call_graph(self, session):
    names = 'learner/0', 'learner/1', 'actor/0', 'actor/1', 'evaluator'
    return topology.one_thread([(name, 'coordinator') for name in names])

  exchanged = []  # noqa: RUF012


class TestPair(conformance.TopologyConformance):
  def make_topology(self):
    return Pair()

  def make_experiment(self, directory, **changes):
    changes['checkpoint_replay'] = False
    return super().make_experiment(directory, **changes)

  def test_exchanges_one_number(self, tmp_path):
    self.run(self.make_experiment(tmp_path))
    mine, others = (one.numpy().ravel() for one in Pair.exchanged[-1])
    assert mine[0] == others[0]
    assert (mine[1:] != others[1:]).all()
