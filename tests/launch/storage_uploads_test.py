"""Tests of uploads of checkpoints during a run."""

import contextlib
import errno
import os
import shutil
import signal
import threading
import time

import pytest

from repertory.components import checkpoints, loggers
from repertory.components.checkpoints import checkpointing
from repertory.launch.opening import remote_storage
from support.launch import storage_fixture, storage_runs

_quickly = storage_runs.quickly


class _Blocked:
  """Blocks uploads at a file until it is released."""

  def __init__(self, monkeypatch):
    self.begun, self.released = threading.Event(), threading.Event()
    upload = checkpoints.StorageFolder.upload

    def wait(folder, path, name):
      self.begun.set()
      assert self.released.wait(30)
      upload(folder, path, name)

    monkeypatch.setattr(checkpoints.StorageFolder, 'upload', wait)


class TestUploads:
  @pytest.fixture(name='blocked')
  def _blocked(self, monkeypatch):
    blocked = _Blocked(monkeypatch)
    yield blocked
    blocked.released.set()

  @contextlib.contextmanager
  def start(self, tmp_path, shown=None, **settings):
    experiment = storage_runs.experiment(
      tmp_path / 'a', tmp_path / 'S', **settings
    )
    take = (lambda status: None) if shown is None else shown.append
    with (
      storage_runs.opened(experiment) as (stored, session),
      remote_storage.Uploads(stored, session, take) as storing,
    ):
      yield storing

  def write(self, tmp_path, value):
    return storage_fixture.write_checkpoint(
      tmp_path / 'a' / 'checkpoints', value
    )

  def test_what_is_removed_meanwhile_is_stored(self, tmp_path, blocked):
    with self.start(tmp_path) as storing:
      path = self.write(tmp_path, 1)
      assert blocked.begun.wait(30)
      shutil.rmtree(path)
      assert os.listdir(tmp_path / 'a' / '.storing')
      blocked.released.set()
      assert storing.finish() == ''
    store = storage_fixture.open_store(tmp_path / 'S')
    assert storage_fixture.fetch(store, tmp_path / 'b') == 1
    assert not (tmp_path / 'a' / '.storing').exists()

  def test_the_end_stores_the_newest(self, tmp_path, blocked):
    """Also if an older one was being uploaded."""
    with self.start(tmp_path) as storing:
      self.write(tmp_path, 1)
      assert blocked.begun.wait(30)
      self.write(tmp_path, 2)
      blocked.released.set()
      assert storing.finish() == ''
    assert [name[:8] for name in storage_runs.names(tmp_path / 'S')] == [
      '00000001', '00000002'
    ]  # fmt: skip

  def test_the_end_waits_for_a_time_and_says_for_what(self, tmp_path, blocked):
    shown, begun = [], time.monotonic()
    with self.start(tmp_path, shown, timeout_seconds=1.0) as storing:
      storing.show(loggers.Status(title='t', steps=0, max_steps=1))
      self.write(tmp_path, 1)
      problem = storing.finish()
    assert time.monotonic() - begun < 10
    assert problem.startswith(
      'Waited 1 seconds at the end of the run for checkpoint 00000001 to be '
      f'stored in {tmp_path}/S'
    )
    assert 'checkpoint 00000001 to be stored' in shown[-1].message
    advice = '. The same command stores it.'
    warned = [problem.removesuffix(advice)]
    assert storage_runs.warnings(tmp_path / 'a') == warned != [problem]
    blocked.released.set()
    assert _wait_until_ended()
    # The upload was canceled: nothing is completed later.
    assert storage_runs.names(tmp_path / 'S') == []

  # A late interrupt ends whatever runs then.
  @pytest.mark.chaos
  def test_a_second_interrupt_ends_the_wait(self, tmp_path, blocked):
    begun = time.monotonic()
    with (
      pytest.raises(KeyboardInterrupt),
      self.start(tmp_path, timeout_seconds=1e6) as storing,
    ):
      self.write(tmp_path, 1)
      assert blocked.begun.wait(30)
      main = threading.main_thread().ident
      threading.Timer(0.5, lambda: _interrupt(main)).start()
      storing.finish()
    assert time.monotonic() - begun < 20
    blocked.released.set()
    assert _wait_until_ended()
    assert storage_runs.names(tmp_path / 'S') == []

  def test_the_end_tries_again_what_could_not_be_stored(
    self, tmp_path, monkeypatch
  ):
    def fail(self, path, name):
      raise OSError(errno.ENOSPC, 'No space left on device', name)

    with self.start(tmp_path) as storing:
      with monkeypatch.context() as patch:
        patch.setattr(checkpoints.StorageFolder, 'upload', fail)
        self.write(tmp_path, 1)
        _wait_for(lambda: storage_runs.warnings(tmp_path / 'a'))
        time.sleep(0.2)  # It is not retried repeatedly.
        assert len(storage_runs.warnings(tmp_path / 'a')) == 1
      assert storing.finish() == ''
    assert len(storage_runs.names(tmp_path / 'S')) == 1

  def test_a_directory_that_cannot_be_read_is_reported(
    self, tmp_path, monkeypatch
  ):
    """The thread continues, and stores what becomes readable again."""

    def fail(self):
      raise OSError(errno.EIO, 'Input/output error', 'checkpoints')

    newest, shown = checkpointing.Checkpointer.newest, []
    # Checkpoints of an earlier run must still not be stored.
    storage_fixture.write_checkpoint(tmp_path / 'a' / 'best', 1, evaluation=9.0)
    with self.start(tmp_path, shown) as storing:
      monkeypatch.setattr(checkpointing.Checkpointer, 'newest', fail)
      _wait_for(lambda: len(storage_runs.warnings(tmp_path / 'a')) == 2)
      storing.show(loggers.Status(title='t', steps=0, max_steps=1))
      assert 'the newest checkpoint is not in' in shown[-1].message
      time.sleep(0.2)
      warned = storage_runs.warnings(tmp_path / 'a')
      assert len(warned) == 2  # One of each kind, without repetitions.
      assert all(
        'OSError: [Errno 5] Input/output error' in one for one in warned
      )
      monkeypatch.setattr(checkpointing.Checkpointer, 'newest', newest)
      self.write(tmp_path, 1)
      _wait_for(lambda: storage_runs.names(tmp_path / 'S'))
      assert storing.finish() == ''
    assert storage_runs.names(tmp_path / 'S', 'best') == []

  def test_what_a_killed_run_did_not_finish_is_removed(self, tmp_path):
    links = tmp_path / 'a' / '.storing' / 'x'
    links.mkdir(parents=True)
    part = tmp_path / 'S' / 'checkpoints' / '00000001-01234567'
    part.mkdir(parents=True)
    (part / 'arrays.npz').write_text('half')
    with self.start(tmp_path) as storing:
      assert not part.exists()
      assert not links.exists()
      storing.finish()


def _wait_for(condition):
  deadline = time.monotonic() + 30
  while not condition():
    assert time.monotonic() < deadline
    time.sleep(0.01)


def _interrupt(thread):
  signal.pthread_kill(thread, signal.SIGINT)


def _wait_until_ended():
  _wait_for(lambda: all(t.name != 'storage' for t in threading.enumerate()))
  return True
