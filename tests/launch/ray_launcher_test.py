"""Tests of Ray's launcher beyond the conformance tests."""

import contextlib
import importlib.util
import subprocess
import time

import psutil
import pytest

from repertory.components.config import settings
from repertory.launch import launchers
from repertory.launch.coordination import kinds
from repertory.launch.launchers import conformance, ray_launcher
from repertory.launch.launchers import launcher as launcher_lib

_SECONDS = 120.0
_SERVICE = kinds.INFERENCE.numbered(0)


def _wait(condition):
  deadline = time.monotonic() + _SECONDS
  while not condition():
    assert time.monotonic() < deadline
    time.sleep(0.05)


def _find_process(home, name):
  """Returns the process of that name and home directory."""
  found = []
  for process in psutil.process_iter():
    with contextlib.suppress(psutil.Error):
      if process.environ().get('HOME') == str(home) and process.name() == name:
        found.append(process)
  (process,) = found
  return process


@pytest.mark.chaos
def test_node_without_its_supervisor_is_lost_and_can_be_replaced(
  tmp_path, monkeypatch
):
  pytest.importorskip('ray')
  home = tmp_path / 'home'
  home.mkdir()
  monkeypatch.setenv('HOME', str(home))
  planned = launcher_lib.NodeGraph(_SECONDS)
  planned.add(launcher_lib.PlannedNode(_SERVICE, conformance._Service))
  launcher = ray_launcher.RayLauncher()
  with launcher.launch(planned, str(tmp_path)) as workers:
    _wait(lambda: workers.is_alive(_SERVICE) and workers.address_of(_SERVICE))
    client = workers.client(_SERVICE)
    assert client.futures.context().result(_SECONDS) == (0, True)
    _wait(lambda: f'{_SERVICE} starts generation 0' in workers.log_of(_SERVICE))
    supervisor = _find_process(home, 'ray::Supervisor')
    node = _find_process(home, _SERVICE)
    supervisor.kill()
    _wait(lambda: not workers.is_alive(_SERVICE))
    _wait(lambda: not node.is_running())
    failure = workers.failure_of(_SERVICE)
    assert failure.is_lost
    assert 'host' in failure.cause
    workers.restart(_SERVICE)
    assert workers.is_alive(_SERVICE)
    assert _SERVICE in workers.waiting()
    _wait(lambda: workers.is_alive(_SERVICE) and workers.address_of(_SERVICE))
    client = workers.client(_SERVICE)
    assert client.futures.context().result(_SECONDS) == (1, True)
    log = workers.log_of(_SERVICE)
    for generation in (0, 1):
      assert f'{_SERVICE} starts generation {generation}' in log
  # A token there would be asked for by every cluster from then on.
  assert not list(home.iterdir())


@pytest.mark.parametrize('address', ['127.0.0.1:1', 'head', '127.0.0.1:x'])
def test_missing_cluster_is_reported(address):
  pytest.importorskip('ray')
  launcher = ray_launcher.RayLauncher(address)
  with pytest.raises(settings.SettingError, match='ray_address must be'):
    launcher.check()


def test_missing_package_is_reported(monkeypatch):
  monkeypatch.setattr(importlib.util, 'find_spec', lambda name: None)
  with pytest.raises(
    settings.SettingError, match=r"pip install 'repertory\[ray\]'"
  ):
    ray_launcher.RayLauncher().check()


@pytest.mark.parametrize(
  ('given', 'found'),
  [
    ((), {}),
    (('actor:CPU=1', 'learner:GPU=0.5'), {
      'actor': {'CPU': 1}, 'learner': {'GPU': 0.5},
    }),
    (('actor:CPU=2', 'actor:my thing=.5'), {
      'actor': {'CPU': 2, 'my thing': 0.5},
    }),
  ],
)  # fmt: skip
def test_resources_are_read(given, found):
  launcher = ray_launcher.RayLauncher(node_resources=given)
  launcher.check()
  assert launcher.resources == found


@pytest.mark.parametrize(
  ('wrong', 'what'),
  [
    ({'node_resources': ('actor',)}, "must be '<kind>:.*got 'actor'"),
    ({'node_resources': ('actor:CPU',)}, "got 'actor:CPU'"),
    ({'node_resources': ('actor:CPU=-1',)}, "got 'actor:CPU=-1'"),
    ({'node_resources': ('actor:CPU=many',)}, "got 'actor:CPU=many'"),
    ({'node_resources': ('actor:CPU=1', 'actor:CPU=2')}, 'actor:CPU only once'),
    ({'node_resources': ('aktor:CPU=1',)}, "got 'aktor'.*'actor'"),
    ({'bind_interface': 'eth0'}, "'eth0'. Name a cluster .*ray_address="),
    ({'allow_public_addresses': True}, 'True. Name a cluster .*ray_address='),
    (
      {'bind_interface': 'none0', 'ray_address': 'localhost:1'},
      "must be a network of .*got 'none0'",
    ),
  ],
)
def test_wrong_settings_are_reported(wrong, what):
  pytest.importorskip('ray')
  with pytest.raises(settings.SettingError, match=what) as caught:
    ray_launcher.RayLauncher(**wrong).check()
  assert caught.value.setting == next(iter(wrong))


@pytest.mark.chaos
def test_resources_of_missing_nodes_are_reported(tmp_path):
  pytest.importorskip('ray')
  planned = launcher_lib.NodeGraph(_SECONDS)
  planned.add(launcher_lib.PlannedNode(_SERVICE, conformance._Service))
  launcher = ray_launcher.RayLauncher(node_resources=('actor:CPU=1',))
  with (
    pytest.raises(
      settings.SettingError, match="own process, inference; got 'actor'"
    ),
    launcher.launch(planned, str(tmp_path)),
  ):
    pass


def test_an_error_of_ray_without_a_text_has_its_class():
  pytest.importorskip('ray')
  message = r"must be that of a Ray cluster, got 'here:1': ConnectionError$"
  with (
    pytest.raises(settings.SettingError, match=message),
    launchers.ray_cluster._setting_errors('here:1'),
  ):
    raise ConnectionError


def test_connection_of_the_user_is_refused(monkeypatch):
  ray = pytest.importorskip('ray')
  monkeypatch.setattr(ray, 'is_initialized', lambda: True)
  with pytest.raises(settings.SettingError, match=r'call `ray.shutdown\(\)`'):
    ray_launcher.RayLauncher().check()


def test_output_after_old_output_was_dropped(monkeypatch):
  pytest.importorskip('ray')
  monkeypatch.setattr(launchers.ray_supervisor, '_MAX_BYTES', 4)
  supervisor = launchers.ray_supervisor.Supervisor(_SERVICE, 'run')

  def print_text(text):
    subprocess.run(['printf', text], stdout=supervisor._printed, check=True)

  print_text('older')
  assert supervisor.read(1) == (b'lder', 5)
  assert supervisor.read(5) == (b'', 0)
  print_text('new')
  assert supervisor.read(0) == (b'new', 3)
  supervisor._printed.close()
