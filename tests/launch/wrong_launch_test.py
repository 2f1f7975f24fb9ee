"""Tests that the conformance tests of launchers and topologies can fail."""

import dataclasses
import threading

import pytest

from repertory.components import loggers
from repertory.components.config import settings
from repertory.launch.experiments import failures
from repertory.launch.launchers import conformance as launchers_conformance
from repertory.launch.launchers import local_launcher, local_workers, node_graph
from repertory.launch.running import conformance
from repertory.launch.topologies import central, distributed, single, topology


class _Launchers(launchers_conformance.LauncherConformance):
  launcher_class = local_launcher.ThreadLauncher

  def make_launcher(self):
    return self.launcher_class()


class _Unnamed(local_launcher.ThreadLauncher):
  help = ''


def test_finds_launchers_without_description():
  checks = _Launchers()
  checks.launcher_class = _Unnamed
  with pytest.raises(AssertionError, match='must have a help'):
    checks.test_describes_itself()


@pytest.mark.parametrize(
  ('method', 'wrong'),
  [
    ('kill', lambda self, name: name),
    ('stacks', lambda self, names: {}),
    ('find_ended', lambda self: []),
    ('find_killed_service', lambda self: 'replay'),
    ('failure_of', lambda self, name: failures.Failure(name, 'It ended.')),
    (
      'failure_of',
      lambda self, name: failures.Failure(
        name, 'This node fails.', is_lost=True
      ),
    ),
  ],
)
def test_finds_wrong_workers(monkeypatch, tmp_path, method, wrong):
  monkeypatch.setattr(local_workers.ThreadWorkers, method, wrong)
  with pytest.raises(AssertionError):
    _Launchers().test_hosts_a_program(tmp_path)


@dataclasses.dataclass(frozen=True)
class _Helpless(single.Single):
  depth: int = settings.field(1, '')


@dataclasses.dataclass(frozen=True)
class _Restless(single.Single):
  """Its settings cannot be compared or sent."""

  lock: object = settings.field(threading.Lock(), 'a lock.')


class _WrongGraph(single.Single):
  def call_graph(self, session):
    graph = super().call_graph(session)
    return graph._replace(calls=[*graph.calls, ('actor/0', 'nobody')])


class _WrongNeighbor(single.Single):
  def call_graph(self, session):
    return super().call_graph(session)._replace(shared=[('learner', 'nobody')])


class _Hiding(distributed.Distributed):
  def call_graph(self, session):
    return _without(super().call_graph(session), 'actor/1')


class _HidingNeighbor(central.Central):
  def call_graph(self, session):
    return _without(super().call_graph(session), 'inference/0')._replace(
      shared=[]
    )


def _without(graph: topology.Graph, hidden: str) -> topology.Graph:
  return graph._replace(
    nodes=[node for node in graph.nodes if node != hidden],
    calls=[pair for pair in graph.calls if hidden not in pair],
  )


class _Changed(distributed.Distributed):
  """Changes its nodes."""

  def program(self, session, title):
    planned = super().program(session, title)
    changed = node_graph.NodeGraph(planned.call_timeout_seconds)
    for plan in planned:
      changed.add(self.change(plan))
    return changed


class _Silent(_Changed):
  def change(self, plan):
    calls = [name for name in plan.calls if name != 'coordinator']
    return dataclasses.replace(plan, calls=calls)


class _Unsendable(_Changed):
  def change(self, plan):
    lock = threading.Lock()
    return dataclasses.replace(plan, make=lambda context: lock)


class _Short(single.Single):
  """Ends too early."""

  def run(self, session, stage):
    experiment = dataclasses.replace(session.experiment, max_steps=100)
    return super().run(
      dataclasses.replace(session, experiment=experiment), stage
    )


class _Silencing(single.Single):
  def run(self, session, stage):
    try:
      return super().run(session, stage)
    except failures.NodeError:
      return loggers.Status('title')


class _Topologies(conformance.TopologyConformance):
  def __init__(self, topology_class):
    self._topology_class = topology_class

  def make_topology(self):
    return self._topology_class()


@pytest.mark.parametrize(
  ('topology_class', 'check'),
  [
    (_Helpless, 'describes_itself'),
    (_Restless, 'describes_itself'),
    (_WrongGraph, 'graph_shows_all_nodes'),
    (_WrongNeighbor, 'graph_shows_all_nodes'),
    (_Hiding, 'graph_shows_all_nodes'),
    (_HidingNeighbor, 'graph_shows_all_nodes'),
    (_Silent, 'program_can_be_sent'),
    (_Unsendable, 'program_can_be_sent'),
    (_Short, 'runs_to_the_end_and_resumes'),
    (_Silencing, 'reports_failing_environment'),
  ],
)
def test_finds_wrong_topologies(tmp_path, topology_class, check):
  arguments = () if check == 'describes_itself' else (tmp_path,)
  with pytest.raises((AssertionError, TypeError)):
    getattr(_Topologies(topology_class), f'test_{check}')(*arguments)
