"""Tests that the conformance tests of launchers and topologies can fail."""

import dataclasses
import threading

import pytest

from repertory.components.config import settings
from repertory.launch.experiments import failures
from repertory.launch.launchers import conformance as launchers_conformance
from repertory.launch.launchers import local_launcher, local_nodes, node_graph
from repertory.launch.running import conformance
from repertory.launch.topologies import distributed, single, topology


class _Launchers(launchers_conformance.LauncherConformance):
  def make_launcher(self):
    return local_launcher.ThreadLauncher()


@pytest.mark.parametrize(
  ('method', 'wrong'),
  [
    ('find_ended', lambda self: []),
    (
      'failure_of',
      lambda self, name: failures.Failure(
        name, 'This node fails.', is_lost=True
      ),
    ),
  ],
)
def test_finds_wrong_workers(monkeypatch, tmp_path, method, wrong):
  monkeypatch.setattr(local_nodes.ThreadWorkers, method, wrong)
  with pytest.raises(AssertionError):
    _Launchers().test_runs_a_graph(tmp_path)


@dataclasses.dataclass(frozen=True)
class _Restless(single.Single):
  """Its settings cannot be compared or sent."""

  lock: object = settings.field(threading.Lock(), 'a lock.')


class _WrongGraph(single.Single):
  def call_graph(self, session):
    graph = super().call_graph(session)
    return graph._replace(calls=[*graph.calls, ('actor/0', 'nobody')])


class _Hiding(distributed.Distributed):
  def call_graph(self, session):
    return _without(super().call_graph(session), 'actor/1')


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


class _Topologies(conformance.TopologyConformance):
  def __init__(self, topology_class):
    self._topology_class = topology_class

  def make_topology(self):
    return self._topology_class()


@pytest.mark.parametrize(
  ('topology_class', 'check'),
  [
    (_Restless, 'describes_itself'),
    (_WrongGraph, 'graph_shows_all_nodes'),
    (_Hiding, 'graph_shows_all_nodes'),
    (_Silent, 'program_can_be_sent'),
    (_Unsendable, 'program_can_be_sent'),
    (_Short, 'runs_to_the_end_and_resumes'),
  ],
)
def test_finds_wrong_topologies(tmp_path, topology_class, check):
  arguments = () if check == 'describes_itself' else (tmp_path,)
  with pytest.raises((AssertionError, TypeError)):
    getattr(_Topologies(topology_class), f'test_{check}')(*arguments)
