"""Conformance tests of variable clients."""

import contextlib
import dataclasses
import math
import threading
import time
import unittest
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import tensorflow as tf

from repertory.components import core
from repertory.components.runtime import signals
from repertory.components.testing import calls
from repertory.components.variables import variable_client

_SHAPES = [(2, 3), (3,), ()]

# Time after which background updates would have shown.
_MOMENT_SECONDS = 0.3

# Maximum time a learner blocks fetches.
_GATE_SECONDS = 600.0


class PretendedLearner(core.VariableSource):
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
    self.publish: Callable[[int, float], None] = lambda *_: None
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

  def get_variables(self, names: Sequence[str]) -> list:
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

  learner: PretendedLearner
  variables: Sequence[tf.Variable]
  variable_client: variable_client.VariableClient
  stop: signals.StopSignal

  @property
  def age_seconds(self) -> float:
    """Age of the variables, which must be known."""
    age = self.variable_client.age_seconds
    assert age is not None, 'age_seconds of copies must be a number, got None.'
    return age

  def check(self) -> int:
    """Checks that all variables are of one version, and returns it."""
    version = self.variable_client.version
    numbers = {float(x) for v in self.variables for x in np.ravel(v.numpy())}
    assert numbers == {float(version)}, (
      f'All variables must have version {version}, got {numbers}.'
    )
    if version >= 0:
      found, expected = self.variable_client.max_priority, version + 0.5
      assert found == expected, (
        f'max_priority must be that of the variables, {expected}, got {found}.'
      )
    return version


class VariableClientConformance:
  """The contract of `variables.VariableClient`.

  Attributes:
    is_shared: Whether the variables are the learner's own, in the same thread.
    deadline_seconds: Time after which a call counts as hanging.
    num_updates: Number of updates while the learner is learning.
  """

  is_shared = False
  deadline_seconds = 60.0
  num_updates = 100

  def make_variable_client(
    self,
    learner: PretendedLearner,
    variables: Sequence[tf.Variable],
    stop: signals.StopSignal,
  ) -> variable_client.VariableClient:
    """Creates the variable client of a learner.

    Args:
      learner: Serves or publishes its variables, see `PretendedLearner`.
      variables: Variables to update, or the learner's own.
      stop: Ends any wait.
    """
    raise NotImplementedError

  @contextlib.contextmanager
  def follow(self) -> Iterator[_Pair]:
    """Yields a learner and its variable client, which must end its threads."""
    with calls.no_threads_left(self.deadline_seconds):
      learner, stop = PretendedLearner(), signals.StopSignal()
      own = learner.variables if self.is_shared else _make_variables(-1)
      made = self.make_variable_client(learner, own, stop)
      try:
        yield _Pair(learner, own, made, stop)
      finally:
        learner.gate.set()
        self.call(made.close)

  def call(self, function: Callable, *args):
    """Calls a function that may block, with the deadline."""
    return calls.Call(function, *args).result(self.deadline_seconds)

  def test_has_nothing_at_first(self):
    with self.follow() as pair:
      expected = 0 if self.is_shared else -1
      found = pair.check()
      assert found == expected, (
        f'version must be {expected} before the first update, got {found}.'
      )
      priority = pair.variable_client.max_priority
      assert math.isfinite(priority) and priority > 0, (
        'max_priority must be finite and positive before the first update, got '
        f'{priority}.'
      )

  def test_waiting_update_comes_back_with_the_newest(self):
    with self.follow() as pair:
      for _ in range(3):
        # A fetch that began earlier does not return the newest.
        self.call(pair.variable_client.update)
        pair.learner.step()
        self.call(pair.variable_client.update, True)
        version = pair.check()
        assert version == pair.learner.version, (
          'A waiting update must return the version at its start or a newer '
          f'one, {pair.learner.version}, got {version}.'
        )
      self.call(pair.variable_client.update, True)  # Nothing is new.
      assert pair.check() == pair.learner.version

  def test_updates_keep_up(self):
    with self.follow() as pair:
      pair.learner.step()

      def update() -> bool:
        self.call(pair.variable_client.update)
        return pair.check() == pair.learner.version

      calls.wait_until(
        update, 'a new version without waiting', self.deadline_seconds
      )

  def test_variables_change_in_updates_alone(self):
    self._skip_shared()
    with self.follow() as pair:
      self.call(pair.variable_client.update, True)
      pair.learner.step()
      self.call(pair.variable_client.update)
      before = pair.check()
      pair.learner.step()
      time.sleep(_MOMENT_SECONDS)
      after = pair.check()
      assert before == after, (
        'Variables must change only in an update; version '
        f'{before} became {after}.'
      )

  def test_versions_are_never_mixed_and_never_fall(self):
    self._skip_shared()
    with self.follow() as pair:
      done = threading.Event()

      def learn():
        while not done.is_set():
          pair.learner.step()

      learning, last = calls.Call(learn), -1
      try:
        for _ in range(self.num_updates):
          self.call(pair.variable_client.update)
          version = pair.check()
          assert version >= last, f'Version {version} came after {last}.'
          last = version
      finally:
        done.set()
        learning.result(self.deadline_seconds)

  def test_age(self):
    with self.follow() as pair:
      pair.learner.step()
      self.call(pair.variable_client.update, True)
      if self.is_shared:
        age = pair.variable_client.age_seconds
        assert age is None, f'age_seconds must be None if shared, got {age}.'
        return
      young = pair.age_seconds
      calls.wait_until(
        lambda: pair.age_seconds > young + 0.05,
        'the variables to grow old',
        self.deadline_seconds,
      )
      begun = time.monotonic()
      pair.learner.step()
      self.call(pair.variable_client.update, True)
      age = pair.age_seconds
      most = time.monotonic() - begun
      assert 0 <= age <= most, (
        f'age_seconds must be at most {most} after an update, got {age}.'
      )

  def test_stop_ends_a_wait(self):
    with self.follow() as pair:
      pair.learner.gate.clear()
      waiting = calls.Call(pair.variable_client.update, True)
      waiting.is_waiting(_MOMENT_SECONDS)
      pair.stop.set()
      with contextlib.suppress(signals.Stopped):  # Or they were there at once.
        waiting.result(self.deadline_seconds)
      pair.check()

  def test_close_ends_all_threads(self):
    with self.follow() as pair:
      self.call(pair.variable_client.update, True)
      self.call(pair.variable_client.update)

  def _skip_shared(self):
    if self.is_shared:
      raise unittest.SkipTest('The learner is in the same thread.')


def _make_variables(number: int) -> list[tf.Variable]:
  return [tf.Variable(tf.fill(shape, float(number))) for shape in _SHAPES]
