"""Checks of who follows the variables of a learner."""

import contextlib
import dataclasses
import math
import threading
import time
import unittest
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import tensorflow as tf

from repertory.components import core, signals
from repertory.components.conformance import calls
from repertory.components.variables import followed

_SHAPES = [(2, 3), (3,), ()]

# After so long, what goes on by itself would have shown.
_MOMENT_SECONDS = 0.3

# How long a learner keeps others waiting at most.
_GATE_SECONDS = 600.0


class PretendedLearner(core.VariableSource):
  """A learner, each step of which fills its variables with the step's number.

  The largest priority is then that number and a half.

  Attributes:
    variables: Its own.
    version: Steps so far.
    publish: Called in each step, with its number and the largest priority, when
      the variables are not written to.
    gate: Keeps who fetches waiting while it is not set.
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
    """Learns."""
    with self._lock:
      self.version += 1
      for variable in self.variables:
        variable.assign(tf.fill(variable.shape, float(self.version)))
      self.publish(self.version, self.max_priority)

  def get_variables(self, names: Sequence[str]) -> list:
    """Returns what `core.VariableSource` names: 'policy' and the counts."""
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
  """A learner and who follows it.

  Attributes:
    variables: Those in use, all filled with the number of their version.
  """

  learner: PretendedLearner
  variables: Sequence[tf.Variable]
  followed: followed.FollowedVariables
  stop: signals.StopSignal

  @property
  def age_seconds(self) -> float:
    """How old the variables are, which must be known."""
    age = self.followed.age_seconds
    assert age is not None, 'Of copies the age must be told; got None.'
    return age

  def check(self) -> int:
    """Checks that all is of one version, and returns that."""
    version = self.followed.version
    numbers = {float(x) for v in self.variables for x in np.ravel(v.numpy())}
    assert numbers == {float(version)}, (
      f'All variables must be those of version {version}; got of {numbers}.'
    )
    if version >= 0:
      found, expected = self.followed.max_priority, version + 0.5
      assert found == expected, (
        f'With the variables comes the largest priority, {expected}; got '
        f'{found}.'
      )
    return version


class FollowedVariablesConformance:
  """The contract of `variables.FollowedVariables`.

  Attributes:
    is_shared: Whether the variables are the learner's own, which acts in the
      same thread.
    deadline_seconds: What takes longer hangs.
    num_updates: How many there are while the learner goes on.
  """

  is_shared = False
  deadline_seconds = 60.0
  num_updates = 100

  def make_followed(
    self,
    learner: PretendedLearner,
    variables: Sequence[tf.Variable],
    stop: signals.StopSignal,
  ) -> followed.FollowedVariables:
    """Makes what follows the learner.

    Args:
      learner: Gives its variables, or publishes them: see there.
      variables: Take the values of the learner's, or are these.
      stop: Ends any wait.
    """
    raise NotImplementedError

  @contextlib.contextmanager
  def follow(self) -> Iterator[_Pair]:
    """Yields a learner and who follows it, and sees that this one ends."""
    with calls.no_threads_left(self.deadline_seconds):
      learner, stop = PretendedLearner(), signals.StopSignal()
      own = learner.variables if self.is_shared else _make_variables(-1)
      made = self.make_followed(learner, own, stop)
      try:
        yield _Pair(learner, own, made, stop)
      finally:
        learner.gate.set()
        self.call(made.close)

  def call(self, function: Callable, *args):
    """Calls what may wait, but not for ever."""
    return calls.Call(function, *args).result(self.deadline_seconds)

  def test_has_nothing_at_first(self):
    with self.follow() as pair:
      expected = 0 if self.is_shared else -1
      found = pair.check()
      assert found == expected, (
        f'Before any variables came, the version must be −1; got {found}.'
      )
      priority = pair.followed.max_priority
      assert math.isfinite(priority) and priority > 0, (
        f'New items need a priority before any came; got {priority}.'
      )

  def test_waiting_update_comes_back_with_the_newest(self):
    with self.follow() as pair:
      for _ in range(3):
        # What is on its way since before is not the newest.
        self.call(pair.followed.update)
        pair.learner.step()
        self.call(pair.followed.update, True)
        version = pair.check()
        assert version == pair.learner.version, (
          'A waiting update must come back with what there was when it began, '
          f'or newer: version {pair.learner.version}; got {version}.'
        )
      self.call(pair.followed.update, True)  # Nothing is new.
      assert pair.check() == pair.learner.version

  def test_updates_keep_up(self):
    with self.follow() as pair:
      pair.learner.step()

      def update() -> bool:
        self.call(pair.followed.update)
        return pair.check() == pair.learner.version

      calls.wait_until(
        update, 'updates that do not wait to bring it', self.deadline_seconds
      )

  def test_variables_change_in_updates_alone(self):
    self._skip_shared()
    with self.follow() as pair:
      self.call(pair.followed.update, True)
      pair.learner.step()
      self.call(pair.followed.update)
      before = pair.check()
      pair.learner.step()
      time.sleep(_MOMENT_SECONDS)
      after = pair.check()
      assert before == after, (
        'Variables must not change under who acts, other than in an update; '
        f'version {before} became {after}.'
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
          self.call(pair.followed.update)
          version = pair.check()
          assert version >= last, f'Version {version} came after {last}.'
          last = version
      finally:
        done.set()
        learning.result(self.deadline_seconds)

  def test_age(self):
    with self.follow() as pair:
      pair.learner.step()
      self.call(pair.followed.update, True)
      if self.is_shared:
        age = pair.followed.age_seconds
        assert age is None, f'The learner has them now: None; got {age}.'
        return
      young = pair.age_seconds
      calls.wait_until(
        lambda: pair.age_seconds > young + 0.05,
        'the variables to grow old',
        self.deadline_seconds,
      )
      begun = time.monotonic()
      pair.learner.step()
      self.call(pair.followed.update, True)
      age = pair.age_seconds
      most = time.monotonic() - begun
      assert 0 <= age <= most, (
        f'New variables must be {most} seconds old at most; got {age}.'
      )

  def test_stop_ends_a_wait(self):
    with self.follow() as pair:
      pair.learner.gate.clear()
      waiting = calls.Call(pair.followed.update, True)
      waiting.is_waiting(_MOMENT_SECONDS)
      pair.stop.set()
      with contextlib.suppress(signals.Stopped):  # Or they were there at once.
        waiting.result(self.deadline_seconds)
      pair.check()

  def test_close_ends_all_threads(self):
    with self.follow() as pair:
      self.call(pair.followed.update, True)
      self.call(pair.followed.update)

  def _skip_shared(self):
    if self.is_shared:
      raise unittest.SkipTest('The learner is in the same thread.')


def _make_variables(number: int) -> list[tf.Variable]:
  return [tf.Variable(tf.fill(shape, float(number))) for shape in _SHAPES]
