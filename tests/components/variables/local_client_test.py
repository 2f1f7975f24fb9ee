"""Tests of variable clients in the learner's process."""

import threading

import numpy as np
import pytest
import tensorflow as tf

from repertory.components import variables
from repertory.components.runtime import signals

SHAPES = [(2, 3), (), (1000,)]


def make(value):
  return [tf.Variable(tf.fill(shape, float(value))) for shape in SHAPES]


def numbers(variable_list):
  """Returns the numbers that fill the variables."""
  return {float(x) for v in variable_list for x in np.ravel(v.numpy())}


class TestPublished:
  @pytest.fixture(autouse=True)
  def _set_up(self):
    self.theirs, self.mine = make(1), make(-7)
    self.publisher = variables.Publisher(self.theirs)
    self.client = variables.LocalVariableClient(self.publisher, self.mine)

  def test_variables_of_other_shapes_are_refused(self):
    for others in (self.mine[:-1], [*self.mine, tf.Variable(0.0)]):
      with pytest.raises(ValueError, match='must create the same variables'):
        variables.LocalVariableClient(self.publisher, others)

  @pytest.mark.parametrize('how', ['assign', 'compiled', 'scatter_update'])
  def test_snapshot_keeps_its_values(self, how):
    def write():
      for variable in self.theirs:
        if how == 'assign':
          variable.assign(tf.fill(variable.shape, 9.0))
        elif how == 'scatter_update' and variable.shape.rank:
          rows = tf.fill(variable.shape[1:], 9.0)[None]
          variable.scatter_update(tf.IndexedSlices(rows, [0]))
        else:
          variable.assign_add(tf.ones(variable.shape))

    if how == 'compiled':
      write = tf.function(write, autograph=False)
    self.publisher.publish(1, 1.0)
    write()
    self.client.update()
    assert numbers(self.mine) == {1.0}
    # The copy, which may share memory with the snapshot, does too.
    write()
    assert numbers(self.mine) == {1.0}
    assert 1.0 not in numbers([v[:1] for v in self.theirs if v.shape.rank])


class TestScheduled:
  @pytest.fixture(autouse=True)
  def _set_up(self):
    self.theirs, self.mine = tf.Variable(0.0), tf.Variable(-1.0)
    self.publisher = variables.Publisher([self.theirs])
    self.publisher.keep(2)
    self.stop = signals.StopSignal()
    self.client = self.make(20.0)

  def make(self, timeout_seconds):
    return variables.ScheduledVariableClient(
      self.publisher, [self.mine], period=3, version_of=lambda k: max(0, k - 1),
      timeout_seconds=timeout_seconds, stop=self.stop,
    )  # fmt: skip

  def publish(self, version):
    self.theirs.assign(float(version))
    self.publisher.publish(version, 1.0)

  def value(self):
    assert float(self.mine.numpy()) == self.client.version
    return self.client.version

  def test_changes_when_a_round_begins(self):
    self.publish(0)
    self.client.update(wait=True)
    found = [self.value()]
    for step in range(1, 10):
      if step in (4, 7):
        self.publish(step // 3)  # Before it is due.
      self.client.update()
      found.append(self.value())
    assert found == [0, 0, 0, 0, 0, 0, 1, 1, 1, 2]

  def test_resumes_with_copied_versions(self):
    self.publisher.keep(3)
    for version in (0, 1, 2):
      self.publish(version)
    copied = self.publisher.copy_from(1)
    assert [version for version, _, _ in copied] == [1, 2]
    # In a resumed run, the newest is there when the others are restored.
    self.publisher = variables.Publisher([self.theirs])
    self.publisher.keep(3)
    self.publish(2)
    self.publisher.restore(copied)
    assert [one[0] for one in self.publisher.copy_from(0)] == [1, 2]
    client = variables.ScheduledVariableClient(
      self.publisher, [self.mine], period=3, first_round=2,
      version_of=lambda k: max(0, k - 1), timeout_seconds=20.0, stop=self.stop,
    )  # fmt: skip
    client.update(wait=True)
    found = [(client.version, float(self.mine.numpy()))]
    for _ in range(3):
      client.update()
      found.append((client.version, float(self.mine.numpy())))
    assert found == [(1, 1.0), (1, 1.0), (1, 1.0), (2, 2.0)]

  def test_waits_for_the_version_that_is_due(self):
    self.publish(0)
    self.client.update(wait=True)
    for _ in range(5):
      self.client.update()
    thread = threading.Thread(target=self.client.update)
    thread.start()
    thread.join(0.3)
    assert thread.is_alive()
    self.publish(1)
    thread.join(20)
    assert not thread.is_alive()
    assert self.value() == 1

  def test_older_versions_are_kept_up_to_the_limit(self):
    for version in (0, 1):
      self.publish(version)
    self.client.update(wait=True)
    assert self.value() == 0
    self.publish(2)
    with pytest.raises(LookupError, match=r'one of the kept \[1, 2\], got 0'):
      self.make(20.0).update(wait=True)

  def test_time_out_names_the_version(self):
    with pytest.raises(TimeoutError, match='for version 0 of the variables'):
      self.make(0.0).update(wait=True)
