"""Tests of `components/learners/target_update.py`."""

import tensorflow as tf
from absl.testing import absltest, parameterized

from repertory.components import learners


def make(period, value=1.0):
  source = [tf.Variable([value, value]), tf.Variable(value)]
  target = [tf.Variable([-1.0, -2.0]), tf.Variable(-3.0)]
  return source, target, learners.PeriodicCopy(source, target, period)


class PeriodicCopyTest(parameterized.TestCase):
  def test_first_copy_is_made_at_construction(self):
    _, target, _ = make(period=5, value=7.0)
    self.assertEqual(target[0].numpy().tolist(), [7, 7])
    self.assertEqual(target[1].numpy(), 7)

  @parameterized.product(period=[1, 2, 3, 5], how=['eager', 'function', 'xla'])
  def test_copies_at_every_multiple_of_the_period(self, period, how):
    source, target, copy = make(period)
    call = copy
    if how != 'eager':
      call = tf.function(copy, jit_compile=how == 'xla')
    seen = []
    for i in range(1, 13):
      for variable in source:
        variable.assign(tf.ones_like(variable) * (100 + i))
      call()
      self.assertEqual(target[0].numpy()[1], target[1].numpy())
      seen.append(int(target[1].numpy()))
    # What was copied last is from the last multiple of the period; before the
    # first one it is what the constructor copied.
    expected = [
      100 + i // period * period if i >= period else 1 for i in range(1, 13)
    ]
    self.assertEqual(seen, expected)

  def test_source_keeps_its_values(self):
    source, _, copy = make(period=1, value=4.0)
    copy()
    self.assertEqual(source[0].numpy().tolist(), [4, 4])

  def test_count_is_saved_and_not_trained(self):
    _, _, copy = make(period=3)
    copy()
    copy()
    counts = [v for v in copy.variables if v.dtype == tf.int64]
    self.assertLen(counts, 1)
    self.assertEqual(counts[0].numpy(), 2)
    self.assertFalse(counts[0].trainable)

  @parameterized.parameters(0, -1)
  def test_refuses_period(self, period):
    with self.assertRaisesRegex(
      ValueError, f'period must be at least 1, got {period}'
    ):
      make(period)

  @parameterized.parameters(
    {'target': [[0.0, 0.0]]},
    {'target': [[0.0, 0.0], [0.0, 0.0]]},
    {'target': [0.0, [0.0, 0.0]]},
  )
  def test_refuses_other_shapes(self, target):
    source = [tf.Variable([0.0, 0.0]), tf.Variable(0.0)]
    with self.assertRaisesRegex(ValueError, 'must have the same shapes'):
      learners.PeriodicCopy(source, [tf.Variable(t) for t in target], 1)


class SoftUpdateTest(parameterized.TestCase):
  @parameterized.parameters('eager', 'function', 'xla')
  def test_moves_a_part_of_the_way(self, how):
    source = [tf.Variable([4.0, 8.0]), tf.Variable(12.0)]
    target = [tf.Variable([-1.0, -2.0]), tf.Variable(-3.0)]
    update = learners.SoftUpdate(source, target, 0.25)
    call = update
    if how != 'eager':
      call = tf.function(update, jit_compile=how == 'xla')
    self.assertEqual(target[0].numpy().tolist(), [4, 8])
    self.assertEqual(target[1].numpy(), 12)
    source[0].assign([0.0, 16.0])
    source[1].assign(0.0)
    call()
    # A quarter from 4 to 0, from 8 to 16 and from 12 to 0.
    self.assertEqual(target[0].numpy().tolist(), [3, 10])
    self.assertEqual(target[1].numpy(), 9)
    call()
    self.assertEqual(target[0].numpy().tolist(), [2.25, 11.5])
    self.assertEqual(target[1].numpy(), 6.75)
    self.assertEqual(source[0].numpy().tolist(), [0, 16])

  @parameterized.parameters(0.0, -0.1, 1.1, float('nan'))
  def test_refuses_rate(self, rate):
    with self.assertRaisesRegex(
      ValueError, rf'rate must be in \(0, 1\], got {rate}'
    ):
      learners.SoftUpdate([], [], rate)

  def test_refuses_other_shapes(self):
    with self.assertRaisesRegex(ValueError, 'must have the same shapes'):
      learners.SoftUpdate([tf.Variable([0.0])], [tf.Variable(0.0)], 0.5)


if __name__ == '__main__':
  absltest.main()
