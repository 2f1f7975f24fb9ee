"""Tests of the contract of variable clients, for each kind of client."""

import contextlib
import dataclasses
import threading
import time
from typing import Any

import numpy as np
import tensorflow as tf

from repertory.components import core, variables
from repertory.components.runtime import signals
from support.system import calls

_SHAPES = [(2, 3), (3,), ()]

# Time after which background updates would have shown.
_MOMENT_SECONDS = 0.3

# Maximum time a learner blocks fetches.
_GATE_SECONDS = 600.0


class _Learner(core.VariableSource):
  """A learner whose steps fill its variables with the step number.

  The largest priority is then that number plus 0.5.

  Attributes:
    variables: The learner's variables.
    version: Steps so far.
    publish: Called in each step, with its number and the largest priority,
      while the variables are not written to.
    gate: Blocks fetches while it is not set.
  """

  def __init__(self):
    self.variables = _make_variables(0)
    self.version = 0
    self.publish = lambda *_: None
    self.gate = threading.Event()
    self.gate.set()
    self._lock = threading.Lock()

  @property
  def max_priority(self) -> float:
    return self.version + 0.5

  def step(self) -> None:
    """Takes a learner step."""
    with self._lock:
      self.version += 1
      for variable in self.variables:
        variable.assign(tf.fill(variable.shape, float(self.version)))
      self.publish(self.version, self.max_priority)

  def get_variables(self, names):
    """Returns 'policy' and the counts, as a `core.VariableSource`."""
    if not self.gate.wait(_GATE_SECONDS):
      raise TimeoutError(f'Waited {_GATE_SECONDS:g} s for the gate.')
    with self._lock:
      found = {
        'policy': [variable.numpy() for variable in self.variables],
        'learner_steps': np.int64(self.version),
        'max_priority': np.float64(self.max_priority),
      }
    return [found[name] for name in names]


@dataclasses.dataclass
class _Pair:
  """A learner and its variable client.

  Attributes:
    variables: The client's, all filled with the number of their version.
  """

  learner: _Learner
  variables: list
  variable_client: Any
  stop: signals.StopSignal

  def check(self) -> int:
    """Checks that all variables are of one version, and returns it."""
    version = self.variable_client.version
    numbers = {float(x) for v in self.variables for x in np.ravel(v.numpy())}
    assert numbers == {float(version)}
    if version >= 0:
      assert self.variable_client.max_priority == version + 0.5
    return version


class VariableClientConformance:
  """The contract of `variables.VariableClient`.

  Subclasses have a method `make_variable_client` of a learner, of the variables
  to update, and of a signal that ends waits.

  """

  deadline_seconds = 60.0

  @contextlib.contextmanager
  def follow(self):
    """Yields a learner and its variable client, which must end its threads."""
    with calls.no_threads_left(self.deadline_seconds):
      learner, stop = _Learner(), signals.StopSignal()
      own = _make_variables(-1)
      made = self.make_variable_client(learner, own, stop)
      try:
        yield _Pair(learner, own, made, stop)
      finally:
        learner.gate.set()
        self.call(made.close)

  def call(self, function, *args):
    """Calls a function that may block, with the deadline."""
    return calls.Call(function, *args).result(self.deadline_seconds)

  def test_has_nothing_at_first(self):
    with self.follow() as pair:
      assert pair.check() == -1
      assert 0 < pair.variable_client.max_priority < np.inf

  def test_waiting_update_comes_back_with_the_newest(self):
    with self.follow() as pair:
      for _ in range(3):
        # A fetch that began earlier does not return the newest.
        self.call(pair.variable_client.update)
        pair.learner.step()
        self.call(pair.variable_client.update, True)
        assert pair.check() == pair.learner.version
      self.call(pair.variable_client.update, True)  # Nothing is new.
      assert pair.check() == pair.learner.version

  def test_variables_change_in_updates_alone(self):
    with self.follow() as pair:
      self.call(pair.variable_client.update, True)
      pair.learner.step()
      self.call(pair.variable_client.update)
      before = pair.check()
      pair.learner.step()
      time.sleep(_MOMENT_SECONDS)
      assert pair.check() == before

  def test_versions_are_never_mixed_and_never_fall(self):
    with self.follow() as pair:
      done = threading.Event()

      def learn():
        while not done.is_set():
          pair.learner.step()

      learning, last = calls.Call(learn), -1
      try:
        for _ in range(100):
          self.call(pair.variable_client.update)
          version = pair.check()
          assert version >= last
          last = version
      finally:
        done.set()
        learning.result(self.deadline_seconds)

  def test_age(self):
    with self.follow() as pair:
      pair.learner.step()
      self.call(pair.variable_client.update, True)
      young = pair.variable_client.age_seconds
      calls.wait_until(
        lambda: pair.variable_client.age_seconds > young + 0.05,
        'the variables to grow old',
        self.deadline_seconds,
      )
      begun = time.monotonic()
      pair.learner.step()
      self.call(pair.variable_client.update, True)
      age = pair.variable_client.age_seconds
      assert 0 <= age <= time.monotonic() - begun

  def test_stop_ends_a_wait(self):
    with self.follow() as pair:
      pair.learner.gate.clear()
      waiting = calls.Call(pair.variable_client.update, True)
      waiting.is_waiting(_MOMENT_SECONDS)
      pair.stop.set()
      with contextlib.suppress(signals.Stopped):  # Or they were there at once.
        waiting.result(self.deadline_seconds)
      pair.check()


def _make_variables(number):
  return [tf.Variable(tf.fill(shape, float(number))) for shape in _SHAPES]


def test_shared_client_has_the_state_of_the_learner():
  learner = _Learner()
  client = variables.SharedVariableClient(learner)
  learner.step()
  client.update(wait=True)
  assert (client.version, client.max_priority) == (1, 1.5)
  assert client.age_seconds is None
  client.close()


class TestLocal(VariableClientConformance):
  def make_variable_client(self, learner, variables_in_use, stop):
    publisher = variables.Publisher(learner.variables)
    learner.publish = publisher.publish
    return variables.LocalVariableClient(publisher, variables_in_use)


class TestRemote(VariableClientConformance):
  def make_variable_client(self, learner, variables_in_use, stop):
    return variables.RemoteVariableClient(learner, variables_in_use, stop=stop)
