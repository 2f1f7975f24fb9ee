"""Conformance tests of all launchers and topologies."""

import dataclasses
import gc
import time
import weakref

import pytest

from repertory.environments.registry import registry
from repertory.launch.launchers import conformance as launchers_conformance
from repertory.launch.launchers import launcher
from repertory.launch.nodes import node as node_lib
from repertory.launch.opening import conformance
from repertory.launch.topologies import (
  anakin,
  central,
  distributed,
  gossip,
  offline,
  sebulba,
  single,
)
from support.replay import recorded_episodes
from support.system import rare_cases, stacks


@stacks.usual_carrier
class TestLaunchers(launchers_conformance.LauncherConformance):
  @pytest.fixture(autouse=True, params=sorted(launcher.launchers()))
  def _name(self, request, each_carrier):
    del each_carrier
    self.name = request.param

  def make_launcher(self):
    return launcher.get(self.name)()


def _find_nodes():
  gc.collect()
  # Not `isinstance`, which fails on weak proxies of deleted objects.
  return weakref.WeakSet(
    one for one in gc.get_objects() if issubclass(type(one), node_lib.Node)
  )


class TestTopologies(conformance.TopologyConformance):
  @pytest.fixture(
    autouse=True,
    params=[
      single.Single(),
      sebulba.Sebulba(),
    ],
    ids=str,
  )
  def _topology(self, request):
    self.topology = request.param

  def make_topology(self):
    return self.topology

  def test_runs_to_the_end_and_resumes(self, tmp_path):
    nodes = _find_nodes()
    super().test_runs_to_the_end_and_resumes(tmp_path)
    deadline = time.monotonic() + 60
    while not _find_nodes() <= nodes:  # Their networks and tables would leak.
      assert time.monotonic() < deadline


class _RarelyRun(conformance.TopologyConformance):
  """Topologies of which only quick checks are run daily."""

  test_runs_to_the_end_and_resumes = rare_cases.rarely(
    conformance.TopologyConformance.test_runs_to_the_end_and_resumes
  )
  test_reports_failing_environment = rare_cases.rarely(
    conformance.TopologyConformance.test_reports_failing_environment
  )


class TestRarelyRunTopologies(_RarelyRun, TestTopologies):
  @pytest.fixture(
    autouse=True,
    params=[
      central.Central(num_inference_servers=2, double_buffering=True),
      distributed.Distributed(),
      gossip.Gossip(),
    ],
    ids=str,
  )
  def _topology(self, request):
    self.topology = request.param


class TestAnakin(_RarelyRun):
  def make_topology(self):
    return anakin.Anakin()

  def make_experiment(self, directory, **changes):
    return dataclasses.replace(
      super().make_experiment(directory, **changes),
      environment_factory=registry.make_factory('tensor:catch'),
    )

  def test_reports_failing_environment(self, tmp_path):
    pytest.skip('No environment can fail inside of a compiled program.')


class TestOffline(_RarelyRun):
  max_steps = 20  # Of the learner.

  @pytest.fixture(autouse=True)
  def _data(self, tmp_path):
    self.data = str(tmp_path / 'data')
    recorded_episodes.play_randomly(self.data, 'catch', num_steps=200)

  def make_topology(self):
    return offline.Offline(data=(self.data,))

  def make_experiment(self, directory, **changes):
    one = {'num_actors': 1, 'environments_per_actor': None}
    return super().make_experiment(directory, **one, **changes)

  def test_reports_failing_environment(self, tmp_path):
    pytest.skip('Nobody acts.')
