"""Tests that two runs with the same storage notice each other."""

import json
import os
import subprocess
import sys
import time

import pytest

from repertory.components import checkpoints
from repertory.components.checkpoints import storage_lock
from repertory.components.config.settings import SettingError
from support.launch import storage_fixture


@pytest.fixture(name='place', params=['path', 'file', 'memory'])
def _place(request, tmp_path):
  place = storage_fixture.make_place(request.param, tmp_path / 'stored')
  yield place
  place.remove('')


@pytest.fixture(autouse=True)
def _quickly(monkeypatch):
  monkeypatch.setattr(storage_lock, '_HEARTBEAT_SECONDS', 0.05)
  monkeypatch.setattr(storage_lock, '_WATCH_SECONDS', 0.5)


def _make(place, directory='run'):
  return storage_lock.StorageLock(place, 'S', directory)


def _hold(place, messages=None, directory='run'):
  report = (lambda message: None) if messages is None else messages.append
  return _make(place, directory).hold(report)


def _write(place, **fields):
  content = {'token': 'x', 'host': 'h', 'process': 1, 'machine': 'm'}
  place.publish('owner.json', json.dumps({**content, **fields}).encode())


def _wait_for(condition):
  deadline = time.monotonic() + 10
  while not condition():
    assert time.monotonic() < deadline
    time.sleep(0.01)


def test_file_is_there_while_it_is_used(place):
  with _hold(place):
    content = json.loads(b''.join(place.read('owner.json')))
    assert content['process'] == os.getpid()
    assert content['directory'] == os.path.abspath('run')
  assert place.names('') == []


def test_file_changes_while_it_is_used(place):
  def beats():
    return json.loads(b''.join(place.read('owner.json')))['beats']

  with _hold(place):
    _wait_for(lambda: beats() > 2)


def test_one_after_the_other_waits_for_nothing(place):
  messages = []
  for _ in range(2):
    with _hold(place, messages):
      pass
  assert not messages


def test_two_at_once_are_refused(place):
  messages = []
  with (
    _hold(place, directory='first'),
    pytest.raises(SettingError, match=r'in use.*/first stores to S') as caught,
    _hold(place, messages, directory='second'),
  ):
    pytest.fail('It began.')
  assert caught.value.setting == 'storage'
  assert 'whether that run is alive' in messages[0]


def test_the_one_that_was_first_keeps_it(place):
  first = _make(place)
  with first.hold(lambda message: None):
    with pytest.raises(SettingError), _hold(place):
      pytest.fail('It began.')
    first.check()


def test_a_run_of_another_host_that_is_gone_is_waited_for(place):
  _write(place)
  messages, begun = [], time.monotonic()
  with _hold(place, messages):
    assert time.monotonic() - begun >= 0.5
  assert 'process 1 on host h' in messages[0]
  assert place.names('') == []


def test_a_run_of_this_machine_that_is_gone_is_not(place):
  ended = subprocess.Popen([sys.executable, '-c', ''])
  ended.wait()
  _write(place, process=ended.pid, machine=storage_lock._machine())
  messages = []
  with _hold(place, messages):
    assert not messages


@pytest.mark.parametrize('content', [b'', b'{', b'[]', b'\xff'])
def test_an_invalid_file_is_waited_for(place, content):
  place.write('owner.json', [content])
  messages = []
  with _hold(place, messages) as held:
    assert held is None
  assert messages


def test_the_loser_raises_an_error(place):
  first = _make(place, 'first')
  with first.hold(lambda message: None):
    first.check()
    _write(place, process=7)
    with pytest.raises(checkpoints.LockLostError, match='process 7 on host h'):
      first.check()
    # It is final, and the file belongs to the other run.
    place.remove('owner.json')
    with pytest.raises(checkpoints.LockLostError):
      first.check()
    _write(place, process=7)
  assert json.loads(b''.join(place.read('owner.json')))['process'] == 7


def test_a_file_that_is_gone_was_another_run_s(place):
  """That run took over, trained, and ended, while this one was disconnected."""
  first = _make(place)
  with first.hold(lambda message: None):
    place.remove('owner.json')
    with pytest.raises(
      checkpoints.LockLostError, match=r'S/owner\.json, .* is gone'
    ):
      first.check()


def test_a_file_that_is_gone_is_not_written_again(place):
  with _hold(place):
    place.remove('owner.json')
    time.sleep(0.3)  # Six heartbeat intervals of 0.05.
    assert place.names('') == []
  assert place.names('') == []


def test_both_at_the_same_time(place, monkeypatch):
  publish = place.publish

  def overtake(name, content):
    publish(name, content)
    _write_by(publish)

  def _write_by(write):
    write('owner.json', json.dumps({'token': 'x', 'process': 7}).encode())

  monkeypatch.setattr(place, 'publish', overtake)
  with (
    pytest.raises(SettingError, match=r'in use, but .*process 7'),
    _hold(place),
  ):
    pytest.fail('It began.')


def test_resumes_when_the_network_is_back(place, monkeypatch):
  first, publish = _make(place), place.publish
  failed = []

  def fail(name, content):
    if len(failed) < 3:
      failed.append(name)
      raise OSError('no network')
    publish(name, content)

  def beats():
    return json.loads(b''.join(place.read('owner.json')))['beats']

  with first.hold(lambda message: None):
    monkeypatch.setattr(place, 'publish', fail)
    before = beats()
    _wait_for(lambda: len(failed) == 3 and beats() > before)
    first.check()
