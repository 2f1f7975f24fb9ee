"""Tests of locks of run directories."""

import contextlib
import fcntl
import os
import signal
import subprocess
import sys

import psutil
import pytest

from repertory.launch.experiments import directories

_HOLD = """
import os, subprocess, sys
from repertory.launch.experiments import directories

with directories.hold('run'):
  {start}
  sys.stdin.read()
"""
# Commands of a child process, which reports when it has begun.
_STARTS = {
  # Like multiprocessing; children end with this process's pipe.
  'fork': """
  if not os.fork():
    print(os.getpid(), flush=True)
    os.close(1)
    sys.stdin.read()
    os._exit(0)
""",
  'exec': """
  child = subprocess.Popen(
    [sys.executable, '-c', 'import sys; sys.stdin.read()'],
    close_fds=False, stdout=subprocess.DEVNULL)
  print(child.pid, flush=True)
""",
}


def _is_held(directory):
  try:
    with directories.hold(directory):
      return False
  except ValueError as error:
    assert 'in use' in str(error)
    return True


@contextlib.contextmanager
def _forked():
  """Forks a process that lives until the end of the block."""
  reader, writer = os.pipe()
  child = os.fork()
  if not child:
    os.close(writer)
    os.read(reader, 1)
    os._exit(0)
  os.close(reader)
  try:
    yield
  finally:
    os.close(writer)
    os.waitpid(child, 0)


def test_a_child_does_not_keep_it_after_the_end(tmp_path):
  directory = str(tmp_path)
  with contextlib.ExitStack() as stack:
    with directories.hold(directory):
      stack.enter_context(_forked())
      assert _is_held(directory)
    assert not _is_held(directory)


def test_a_child_that_leaves_the_block_does_not_free_it(tmp_path):
  directory, process_id = str(tmp_path), os.getpid()
  try:
    with directories.hold(directory):
      child = os.fork()
      if not child:
        raise SystemExit
      os.waitpid(child, 0)
      assert _is_held(directory)
  finally:
    if os.getpid() != process_id:
      os._exit(0)
  assert not _is_held(directory)


@pytest.mark.parametrize('how', _STARTS)
def test_a_child_does_not_keep_it_when_the_run_is_killed(tmp_path, how):
  directory = str(tmp_path / 'run')
  run = subprocess.Popen(
    [sys.executable, '-c', _HOLD.format(start=_STARTS[how].strip())],
    cwd=tmp_path,
    stdin=subprocess.PIPE,
    stdout=subprocess.PIPE,
  )
  with run:
    child = psutil.Process(int(run.stdout.readline()))
    assert _is_held(directory)
    run.send_signal(signal.SIGKILL)
    run.wait(30)
    assert not _is_held(directory)
    assert child.is_running()
    assert child.status() != psutil.STATUS_ZOMBIE
    run.stdin.close()
    child.wait(30)


def test_who_looks_sees_who_holds_it_and_leaves_no_trace(tmp_path):
  directory = str(tmp_path)
  assert not directories.is_held(directory)
  assert not os.listdir(directory)
  with directories.hold(directory):
    assert directories.is_held(directory)
  assert not directories.is_held(directory)


def test_who_looks_does_not_keep_a_run_from_it(tmp_path, monkeypatch):
  directory = str(tmp_path)
  (tmp_path / directories.LOCK).touch()
  with open(tmp_path / directories.LOCK) as looked_at:
    fcntl.flock(looked_at, fcntl.LOCK_SH)
    monkeypatch.setattr(
      directories.time,
      'sleep',
      lambda seconds: fcntl.flock(looked_at, fcntl.LOCK_UN),
    )
    with directories.hold(directory):
      assert directories.is_held(directory)
