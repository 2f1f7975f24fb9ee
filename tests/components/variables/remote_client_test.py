"""Tests of the variable client against a source that records its calls."""

import threading

import numpy as np
import pytest
import tensorflow as tf

from repertory.components import core, variables
from repertory.components.runtime import signals
from support.replay import replay_fixture

SHAPES = [(2, 3), (3,), ()]


class Source(core.VariableSource):
  """Returns variables filled with its version, once it is allowed to."""

  def __init__(self):
    self.version = 0
    self.asked = []
    self.error = None
    self.shapes = SHAPES
    self.gate = threading.Event()
    self.gate.set()

  def get_variables(self, names):
    self.asked.append(list(names))
    version = self.version
    if not self.gate.wait(replay_fixture.DEADLINE_SECONDS):
      raise AssertionError('The test did not open the gate.')
    if self.error is not None:
      raise self.error
    values = [np.full(s, version, np.float32) for s in self.shapes]
    # A second name has all but the first variable.
    groups = [values] if len(names) == 3 else [values[:1], values[1:]]
    return [*groups, np.int64(version), np.float64(version + 0.5)]


class Harness:
  """A client, its source and its variables."""

  def __init__(self, source, **settings):
    self.source = source
    self.variables = [tf.Variable(tf.fill(s, -7.0)) for s in SHAPES]
    self.stop = signals.StopSignal()
    settings = {'timeout_seconds': 60, 'stop': self.stop} | settings
    self.client = variables.RemoteVariableClient(
      source, self.variables, **settings
    )

  def update(self, wait=False):
    replay_fixture.Call(self.client.update, wait).result()

  def values(self):
    """Returns the number that fills all variables."""
    numbers = {float(x) for v in self.variables for x in np.ravel(v.numpy())}
    assert len(numbers) == 1, 'variables of several versions'
    return numbers.pop()

  def wait_for_arrival(self):
    """Waits until the requested variables have arrived."""
    replay_fixture.wait_until(self.client._fetch.done, 'the variables')


@pytest.fixture(name='make')
def _make():
  with replay_fixture.no_threads_left():
    harnesses = []

    def make(**settings):
      harnesses.append(Harness(Source(), **settings))
      return harnesses[-1]

    yield make
    for harness in harnesses:
      harness.source.gate.set()
      harness.client.close()


def test_all_names_are_fetched_at_once(make):
  """So they have the same version."""
  harness = make(names=('target', 'policy'))
  harness.source.version = 3
  harness.update(wait=True)
  assert harness.values() == 3
  assert harness.source.asked == [
    ['target', 'policy', 'learner_steps', 'max_priority']
  ]


def test_update_does_not_wait(make):
  """The actor continues with its variables during a fetch."""
  harness = make()
  harness.source.gate.clear()
  harness.source.version = 5
  for _ in range(10):
    harness.update()
  replay_fixture.wait_until(lambda: harness.source.asked, 'a fetch')
  assert len(harness.source.asked) == 1  # One at a time.
  assert harness.values() == -7
  assert harness.client.version == -1
  harness.source.gate.set()
  harness.wait_for_arrival()
  # Variables do not change between updates, and are not fetched unasked.
  assert not harness.stop.wait(0.2)
  assert harness.values() == -7
  assert len(harness.source.asked) == 1
  harness.update()
  assert harness.values() == 5
  assert harness.client.version == 5


def test_update_period(make):
  harness = make(update_period=3)
  asked = []
  for _ in range(9):
    num_before = len(harness.source.asked)
    harness.update()
    if harness.client._fetch is not None:
      harness.wait_for_arrival()
    asked.append(len(harness.source.asked) - num_before)
  assert asked == [0, 0, 1] * 3


def test_resumes_after_an_error_of_the_source(make):
  """An error concerns one fetch; the next one may succeed."""
  harness = make()
  harness.source.error = ConnectionError('gone for a moment')
  with pytest.raises(ConnectionError):
    harness.update(wait=True)
  harness.source.error = None
  harness.source.version = 6
  harness.update(wait=True)
  assert harness.values() == 6


def test_variables_that_do_not_fit_are_refused(make):
  shapes = [(3,), (2, 3), ()]
  harness = make(names=('policy',))
  harness.source.shapes = shapes
  with pytest.raises(ValueError) as error:
    harness.update(wait=True)
  for expected in ("'policy'", str(SHAPES), str(shapes)):
    assert expected in str(error.value)
  assert harness.values() == -7
  assert harness.client.version == -1


def test_time_out_of_a_wait(make):
  harness = make(timeout_seconds=0.5, names=('policy',))
  harness.source.gate.clear()
  with pytest.raises(TimeoutError) as error:
    harness.update(wait=True)
  assert "0.5 seconds for variables 'policy' from the learner" in str(
    error.value
  )


def test_close_does_not_wait_forever_for_the_source(make):
  harness = make()
  harness.source.gate.clear()
  harness.update()
  replay_fixture.wait_until(lambda: harness.source.asked, 'a fetch')
  replay_fixture.Call(harness.client.close, 0.3).result(3)
  # The thread ends after its call, which the fixture releases.
