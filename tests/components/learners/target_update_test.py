"""Tests of `components/learners/target_update.py`."""

import pytest
import tensorflow as tf

from repertory.components import learners


def make(period, value=1.0):
  source = [tf.Variable([value, value]), tf.Variable(value)]
  target = [tf.Variable([-1.0, -2.0]), tf.Variable(-3.0)]
  return source, target, learners.PeriodicCopy(source, target, period)


class TestPeriodicCopy:
  def test_first_copy_is_made_at_construction(self):
    _, target, _ = make(period=5, value=7.0)
    assert target[0].numpy().tolist() == [7, 7]
    assert target[1].numpy() == 7

  @pytest.mark.parametrize('period', [1, 2, 3, 5])
  @pytest.mark.parametrize('how', ['eager', 'function', 'xla'])
  def test_copies_at_every_multiple_of_the_period(self, period, how):
    source, target, copy = make(period)
    call = copy
    if how != 'eager':
      call = tf.function(copy, jit_compile=how == 'xla', autograph=False)
    seen = []
    for i in range(1, 13):
      for variable in source:
        variable.assign(tf.ones_like(variable) * (100 + i))
      call()
      assert target[0].numpy()[1] == target[1].numpy()
      seen.append(int(target[1].numpy()))
    # The last copy was made at a multiple of the period; before the first one
    # it is the constructor's copy.
    expected = [
      100 + i // period * period if i >= period else 1 for i in range(1, 13)
    ]
    assert seen == expected

  def test_source_keeps_its_values(self):
    source, _, copy = make(period=1, value=4.0)
    copy()
    assert source[0].numpy().tolist() == [4, 4]

  def test_count_is_saved_and_not_trained(self):
    _, _, copy = make(period=3)
    copy()
    copy()
    counts = [v for v in copy.variables if v.dtype == tf.int64]
    assert len(counts) == 1
    assert counts[0].numpy() == 2
    assert not counts[0].trainable

  @pytest.mark.parametrize('period', [0, -1])
  def test_refuses_period(self, period):
    with pytest.raises(
      ValueError, match=f'period must be at least 1, got {period}'
    ):
      make(period)

  @pytest.mark.parametrize(
    'target', [[[0.0, 0.0]], [[0.0, 0.0], [0.0, 0.0]], [0.0, [0.0, 0.0]]]
  )
  def test_refuses_other_shapes(self, target):
    source = [tf.Variable([0.0, 0.0]), tf.Variable(0.0)]
    with pytest.raises(ValueError, match='must have the same shapes'):
      learners.PeriodicCopy(source, [tf.Variable(t) for t in target], 1)


class TestSoftUpdate:
  @pytest.mark.parametrize('how', ['eager', 'function', 'xla'])
  def test_moves_a_part_of_the_way(self, how):
    source = [tf.Variable([4.0, 8.0]), tf.Variable(12.0)]
    target = [tf.Variable([-1.0, -2.0]), tf.Variable(-3.0)]
    update = learners.SoftUpdate(source, target, 0.25)
    call = update
    if how != 'eager':
      call = tf.function(update, jit_compile=how == 'xla', autograph=False)
    assert target[0].numpy().tolist() == [4, 8]
    assert target[1].numpy() == 12
    source[0].assign([0.0, 16.0])
    source[1].assign(0.0)
    call()
    # A quarter from 4 to 0, from 8 to 16 and from 12 to 0.
    assert target[0].numpy().tolist() == [3, 10]
    assert target[1].numpy() == 9
    call()
    assert target[0].numpy().tolist() == [2.25, 11.5]
    assert target[1].numpy() == 6.75
    assert source[0].numpy().tolist() == [0, 16]

  @pytest.mark.parametrize('rate', [0.0, -0.1, 1.1, float('nan')])
  def test_refuses_rate(self, rate):
    with pytest.raises(
      ValueError, match=rf'rate must be in \(0, 1\], got {rate}'
    ):
      learners.SoftUpdate([], [], rate)

  def test_refuses_other_shapes(self):
    with pytest.raises(ValueError, match='must have the same shapes'):
      learners.SoftUpdate([tf.Variable([0.0])], [tf.Variable(0.0)], 0.5)
