"""Tests of user-defined topologies and launchers."""

import contextlib

import pytest

from repertory import launch
from repertory.launch.experiments import failures
from repertory.launch.launchers import launcher
from repertory.launch.topologies import single, topology


class Own(single.Single):
  """Topology of a user."""

  name = 'own'
  rank = 99


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
    'dqn', 'catch', max_steps=300, directory=str(tmp_path / 'run'),
    num_actors=2,
  )  # fmt: skip


def test_registered_topology_is_known_by_name(experiment):
  with pytest.raises(ValueError, match='single, distributed, central'):
    launch.run(experiment, 'own')
  topology.register(Own)
  assert list(topology.topologies())[-1] == 'own'
  assert launch.run(experiment, 'own', display=False)


def test_own_launcher_gets_the_program(experiment):
  launcher.register(Recorder)
  with pytest.raises(launch.NodeError, match='only recorded'):
    launch.run(experiment, 'distributed', 'recorder', display=False)
  (recorded,) = Recorder.programs
  assert recorded.names == [
    'coordinator', 'replay', 'learner', 'evaluator', 'actor/0', 'actor/1'
  ]  # fmt: skip
  assert list(recorded['actor/1'].calls) == ['replay', 'learner', 'coordinator']
