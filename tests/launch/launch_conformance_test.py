"""Checks all launchers and topologies."""

import pytest

from repertory.launch import conformance
from repertory.launch.launchers import conformance as launchers_conformance
from repertory.launch.launchers import launcher
from repertory.launch.topologies import central, distributed, single


class TestLaunchers(launchers_conformance.LauncherConformance):
  @pytest.fixture(autouse=True, params=sorted(launcher.launchers()))
  def _name(self, request):
    self.name = request.param

  def make_launcher(self):
    return launcher.get(self.name)


class TestTopologies(conformance.TopologyConformance):
  @pytest.fixture(
    autouse=True,
    params=[
      single.Single(),
      distributed.Distributed(),
      central.Central(),
      central.Central(num_inference_servers=2, double_buffering=True),
    ],
    ids=str,
  )
  def _topology(self, request):
    self.topology = request.param

  def make_topology(self):
    return self.topology
