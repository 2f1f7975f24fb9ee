"""Fixtures and hooks of all tests."""

import gc
import os
import signal
import sys
import textwrap
import threading
import time

import pytest

from repertory.components.runtime import xla_cache
from repertory.launch.launchers import rpc
from support.system import program, stacks

# Tests do not depend on what earlier ones compiled.
os.environ[xla_cache.VARIABLE] = ''

# Tests in the background of a shell may ignore these signals, and their child
# processes would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.hookimpl(wrapper=True)
def pytest_collection():
  """Excludes imported objects from garbage collection during test collection.

  They live to the end. Scanning them takes a sixth of the collection's time,
  and time in each later run of the collector.
  """
  gc.disable()
  try:
    return (yield)
  finally:
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.fixture(autouse=True)
def _restore_interrupts():
  """Restores the handler of Ctrl-C before each test."""
  signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def _none_left():
  """Kills programs that a failed test left."""
  with program.none_left():
    yield


@pytest.fixture(params=[rpc.COURIER, rpc.GRPC])
def each_carrier(request, monkeypatch):
  """Runs a test with each implementation of remote calls."""
  if request.param == rpc.COURIER and not stacks.HAS_LAUNCHPAD:
    pytest.skip(stacks.NO_LAUNCHPAD)
  monkeypatch.setenv(rpc.VARIABLE, request.param)
  return request.param


@pytest.fixture
def threads_end():
  """Checks that all threads of a test end."""
  before = set(threading.enumerate())
  yield
  deadline = time.monotonic() + 30
  while left := set(threading.enumerate()) - before:
    assert time.monotonic() < deadline, left
    time.sleep(0.05)


@pytest.fixture
def write_module(tmp_path, monkeypatch):
  """Writes a user module to the current folder, which is a new one."""
  monkeypatch.chdir(tmp_path)
  monkeypatch.setattr(sys, 'path', list(sys.path))
  before = set(sys.modules)

  def write(name: str, source: str) -> None:
    path = tmp_path.joinpath(*name.split('.')).with_suffix('.py')
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(source))

  yield write
  here = str(tmp_path)
  modules = [
    (name, vars(sys.modules[name])) for name in set(sys.modules) - before
  ]
  own = [
    name
    for name, names in modules
    for place in (names.get('__file__'), *names.get('__path__', ()))
    if place and place.startswith(here)
  ]
  for name in set(own):
    del sys.modules[name]
