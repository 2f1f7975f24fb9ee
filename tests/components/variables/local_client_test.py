"""Tests of `components/variables/local_client.py`."""

import threading
from unittest import mock

import numpy as np
import pytest
import tensorflow as tf

from repertory.components import variables
from repertory.components.variables import local_client
from support.replay import replay_fixture

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

  def test_before_the_first(self):
    self.client.update()
    self.client.update(
      wait=True
    )  # Returns, because snapshots are there at once.
    assert numbers(self.mine) == {-7.0}
    assert self.client.version == -1
    assert self.client.age_seconds == 0.0
    assert self.client.max_priority == 1.0

  def test_update(self):
    self.publisher.publish(3, 2.5)
    assert self.client.version == -1  # Not applied yet.
    assert numbers(self.mine) == {-7.0}
    self.client.update()
    assert numbers(self.mine) == {1.0}
    assert self.client.version == 3
    assert self.client.max_priority == 2.5
    self.client.close()

  def test_variables_of_other_shapes_are_refused(self):
    for others in (self.mine[:-1], [*self.mine, tf.Variable(0.0)]):
      with pytest.raises(ValueError, match='must create the same variables'):
        variables.LocalVariableClient(self.publisher, others)

  def test_the_newest_counts(self):
    for version in (1, 2, 3):
      for variable in self.theirs:
        variable.assign(tf.fill(variable.shape, float(version * 10)))
      self.publisher.publish(version, float(version))
    self.client.update()
    assert numbers(self.mine) == {30.0}
    assert self.client.version == 3

  def test_nothing_is_copied_twice(self):
    self.publisher.publish(1, 1.0)
    self.client.update()
    self.mine[0].assign(tf.fill(SHAPES[0], 5.0))
    self.client.update()
    assert numbers(self.mine[:1]) == {5.0}

  def test_version_0_counts(self):
    self.publisher.publish(0, 1.0)
    self.client.update()
    assert self.client.version == 0
    assert numbers(self.mine) == {1.0}

  def test_age_is_since_publication(self):
    with mock.patch.object(local_client.time, 'monotonic') as clock:
      clock.return_value = 100.0
      self.publisher.publish(1, 1.0)
      clock.return_value = 107.0
      self.client.update()
      clock.return_value = 110.0
      self.publisher.publish(2, 1.0)  # Not in use.
      assert self.client.age_seconds == 110.0 - 100.0

  @pytest.mark.parametrize(
    'how', ['assign_add', 'assign', 'compiled', 'xla', 'scatter_update']
  )
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

    if how in ('compiled', 'xla'):
      write = tf.function(write, jit_compile=how == 'xla', autograph=False)
    self.publisher.publish(1, 1.0)
    write()
    self.client.update()
    assert numbers(self.mine) == {1.0}
    # The copy, which may share memory with the snapshot, does too.
    write()
    assert numbers(self.mine) == {1.0}
    assert 1.0 not in numbers([v[:1] for v in self.theirs if v.shape.rank])

  def test_writing_to_the_copy_changes_nothing_else(self):
    self.publisher.publish(1, 1.0)
    self.client.update()
    for variable in self.mine:
      variable.assign_add(tf.ones(variable.shape))
    assert numbers(self.theirs) == {1.0}
    assert numbers(self.publisher.newest.values) == {1.0}

  def test_two_clients(self):
    others = make(-8)
    other = variables.LocalVariableClient(self.publisher, others)
    self.publisher.publish(1, 1.0)
    self.client.update()
    self.publisher.publish(2, 1.0)
    other.update()
    assert (self.client.version, other.version) == (1, 2)
    assert numbers(others) == {1.0}

  def test_versions_are_never_mixed_nor_go_back(self):
    num_versions, done = 300, threading.Event()

    def learn():
      for version in range(1, num_versions + 1):
        for variable in self.theirs:
          variable.assign(tf.fill(variable.shape, float(version)))
        self.publisher.publish(version, float(version))
      done.set()

    call = replay_fixture.Call(learn)
    seen = [-1]
    while seen[-1] < num_versions:
      was_done = done.is_set()
      self.client.update()
      version = self.client.version
      if version >= 0:
        assert numbers(self.mine) == {float(version)}
        assert self.client.max_priority == float(version)
      assert version >= seen[-1]
      seen.append(version)
      assert not (was_done and version < num_versions)
    call.result()
