"""Tests that two runs with the same storage notice each other."""

import json
import os
import time

import pytest

from repertory.components import checkpoints
from repertory.components.checkpoints import storage
from repertory.components.config.settings import SettingError


@pytest.fixture(name='folder')
def _folder(tmp_path):
  folder = checkpoints.StorageFolder(f'memory://{tmp_path}')
  yield folder
  folder.remove('')


@pytest.fixture(autouse=True)
def _quickly(monkeypatch):
  monkeypatch.setattr(storage, '_HEARTBEAT_SECONDS', 0.05)
  monkeypatch.setattr(storage, '_WATCH_SECONDS', 0.5)


def _make(folder, directory='run'):
  return storage.StorageLock(folder, 'S', directory)


def _hold(folder, messages=None, directory='run'):
  report = (lambda message: None) if messages is None else messages.append
  return _make(folder, directory).owning(report)


def _write(folder, **fields):
  content = {'token': 'x', 'host': 'h', 'process': 1}
  folder.publish('owner.json', json.dumps({**content, **fields}).encode())


def _content(folder):
  return json.loads(folder.read('owner.json'))


def _wait_for(condition):
  deadline = time.monotonic() + 10
  while not condition():
    assert time.monotonic() < deadline
    time.sleep(0.01)


def test_file_changes_while_it_is_used_and_is_removed(folder):
  messages = []
  for _ in range(2):
    with _hold(folder, messages):
      content = _content(folder)
      assert content['process'] == os.getpid()
      assert content['directory'] == os.path.abspath('run')
      _wait_for(lambda: _content(folder)['beats'] > 2)
    assert folder.names('') == []
  assert not messages


def test_two_at_once_are_refused(folder):
  messages = []
  first = _make(folder, 'first')
  with first.owning(messages.append):
    with (
      pytest.raises(SettingError, match=r'in use.*/first stores to S') as error,
      _hold(folder, messages, directory='second'),
    ):
      pytest.fail('It began.')
    first.check()
  assert error.value.setting == 'storage'
  assert 'whether that run is alive' in messages[0]


@pytest.mark.parametrize('is_valid', [True, False])
def test_a_run_that_is_gone_is_waited_for(folder, is_valid):
  if is_valid:
    _write(folder)
  else:
    folder.publish('owner.json', b'{')
  messages, begun = [], time.monotonic()
  with _hold(folder, messages):
    assert time.monotonic() - begun >= 0.5
  expected = 'process 1 on host h' if is_valid else 'process ? on host ?'
  assert expected in messages[0]
  assert folder.names('') == []


def test_the_loser_raises_an_error(folder):
  first = _make(folder, 'first')
  with first.owning(lambda message: None):
    first.check()
    _write(folder, process=7)
    with pytest.raises(checkpoints.LockLostError, match='process 7 on host h'):
      first.check()
    # It is final, and the file belongs to the other run.
    folder.remove('owner.json')
    with pytest.raises(checkpoints.LockLostError):
      first.check()
    _write(folder, process=7)
  assert _content(folder)['process'] == 7


def test_a_file_that_is_gone_was_another_run_s(folder):
  """That run took over, trained, and ended, while this one was disconnected."""
  first = _make(folder)
  with first.owning(lambda message: None):
    folder.remove('owner.json')
    time.sleep(0.2)  # Four heartbeat intervals: it is not written again.
    assert folder.names('') == []
    with pytest.raises(
      checkpoints.LockLostError, match=r'S/owner\.json, .* is gone'
    ):
      first.check()


def test_both_at_the_same_time(folder, monkeypatch):
  publish = folder.publish

  def overtake(name, content):
    publish(name, content)
    publish(name, json.dumps({'token': 'x', 'process': 7}).encode())

  monkeypatch.setattr(folder, 'publish', overtake)
  with (
    pytest.raises(SettingError, match=r'in use, but .*process 7'),
    _hold(folder),
  ):
    pytest.fail('It began.')


def test_resumes_when_the_network_is_back(folder, monkeypatch):
  publish, failed = folder.publish, []

  def fail(name, content):
    if len(failed) < 3:
      failed.append(name)
      raise OSError('no network')
    publish(name, content)

  first = _make(folder)
  with first.owning(lambda message: None):
    monkeypatch.setattr(folder, 'publish', fail)
    before = _content(folder)['beats']
    _wait_for(lambda: len(failed) == 3 and _content(folder)['beats'] > before)
    first.check()
