"""Tests of variable clients in the learner's process."""

import numpy as np
import pytest
import tensorflow as tf

from repertory.components import variables

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
