"""What holds for all tests."""

import gc
import signal
import sys
import textwrap
import threading
import time

import pytest

import program
import stacks
from repertory.launch.launchers import carriers

# A shell that runs tests in the background may have them ignore these signals,
# and what they start would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.hookimpl(wrapper=True)
def pytest_collection():
  """Spares the garbage collector all that is imported to collect the tests.

  It stays to the end. Looking through it takes a sixth of the time to collect,
  and afterwards time in each of the collector's runs.
  """
  gc.disable()
  try:
    return (yield)
  finally:
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.fixture(autouse=True)
def _interrupt_as_ever():
  """Lets no test inherit what another one made of Ctrl-C."""
  signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def _none_left():
  """Sees to it that no program outlives a test that fails."""
  with program.none_left():
    yield


@pytest.fixture(params=[carriers.COURIER, carriers.GRPC])
def each_carrier(request, monkeypatch):
  """Lets what a test launches call each other in every way there is."""
  if request.param == carriers.COURIER and not stacks.HAS_LAUNCHPAD:
    pytest.skip(stacks.NO_LAUNCHPAD)
  monkeypatch.setenv(carriers.VARIABLE, request.param)
  return request.param


@pytest.fixture
def threads_end():
  """Sees to it that all threads end that a test starts."""
  before = set(threading.enumerate())
  yield
  deadline = time.monotonic() + 30
  while left := set(threading.enumerate()) - before:
    assert time.monotonic() < deadline, left
    time.sleep(0.05)


@pytest.fixture
def write_module(tmp_path, monkeypatch):
  """Writes a user's module, by name, into the current folder, an empty one."""
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
