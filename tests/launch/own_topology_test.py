"""Tests of user-defined topologies and launchers."""

import contextlib
import dataclasses
import functools

import pytest

from repertory import launch
from repertory.components.config import settings
from repertory.launch import failures
from repertory.launch.launchers import launcher, node_graph
from repertory.launch.nodes import node
from repertory.launch.topologies import parts, topology


class _Idle(node.Node):
  """Node that ends at once."""

  def __init__(self, context, log):
    self.name = context.name
    self._coordinator = context.coordinator
    self._log = log

  def run(self):
    self._log.append(f'{self.name} runs')

  def report(self):
    return self._coordinator.poll(self.name)

  def close(self):
    self._log.append(f'{self.name} closes')


@dataclasses.dataclass(frozen=True)
class TwoLearners(topology.Topology):
  """Two learners without data."""

  name = 'two_learners'
  help = 'two learners that do nothing'

  num_learners: int = settings.field(2, 'how many there are.')

  log = []  # noqa: RUF012

  def program(self, session, title):
    planned = parts.make_program(session, title)
    for index in range(self.num_learners):
      make = functools.partial(_Idle, log=self.log)
      planned.add(
        node_graph.PlannedNode(f'learner/{index}', make, ['coordinator'])
      )
    return planned


class Recorder(launcher.Launcher):
  """Launcher that records node graphs."""

  name = 'recorder'
  title = 'recorder'
  help = 'nothing at all'

  programs = []  # noqa: RUF012

  @contextlib.contextmanager
  def launch(self, program, log_directory):
    self.programs.append(program)
    failure = failures.Failure('coordinator', 'It was only recorded.')
    raise failures.NodeError(failure)
    yield


@pytest.fixture(autouse=True)
def _registries(monkeypatch):
  """Restores the registries after a test."""
  for registry in (topology._REGISTRY, launcher._REGISTRY):
    assert registry.entries  # What there is has been found.
    monkeypatch.setattr(registry, '_found', dict(registry._found))


@pytest.fixture(name='experiment')
def _experiment(tmp_path):
  return launch.make_experiment(
    'dqn', 'catch', max_steps=1000, directory=str(tmp_path / 'run'),
    num_actors=2,
  )  # fmt: skip


def test_own_topology_runs(experiment):
  TwoLearners.log.clear()
  result = launch.run(experiment, TwoLearners(3), display=False)
  nodes = dict(result.status.nodes)
  # The replay server may not have reported before the learners were done.
  assert nodes.pop('replay') in ('starting', 'running')
  assert nodes == dict.fromkeys(['learner/0', 'learner/1', 'learner/2'], 'done')
  assert sorted(TwoLearners.log) == [
    f'learner/{i} {what}' for i in range(3) for what in ('closes', 'runs')
  ]


def test_registered_topology_is_known_by_name(experiment):
  with pytest.raises(ValueError, match='single, distributed, central'):
    launch.run(experiment, 'two_learners')
  topology.register(TwoLearners)
  assert list(topology.topologies())[-1] == 'two_learners'
  assert launch.run(experiment, 'two_learners', display=False)


def test_own_launcher_gets_the_program(experiment):
  launcher.register(Recorder)
  with pytest.raises(launch.NodeError, match='only recorded'):
    launch.run(experiment, 'distributed', 'recorder', display=False)
  (recorded,) = Recorder.programs
  assert recorded.names == [
    'coordinator', 'replay', 'learner', 'evaluator', 'actor/0', 'actor/1'
  ]  # fmt: skip
  assert list(recorded['actor/1'].calls) == ['replay', 'learner', 'coordinator']
