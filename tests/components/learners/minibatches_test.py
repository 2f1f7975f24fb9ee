"""Tests of `components/learners/minibatches.py`."""

from typing import Any, NamedTuple

import numpy as np
import pytest
import tensorflow as tf

from repertory.components import learners


class _Items(NamedTuple):
  number: Any
  mask: Any


def minibatches(seed=(1, 2), **sizes):
  indices, counts = learners.shuffled_minibatches(tf.constant(seed), **sizes)
  return indices.numpy(), counts.numpy()


@pytest.mark.parametrize(
  ('num_items', 'num_minibatches', 'sizes'),
  [(9, 4, [3, 2, 2, 2]), (7, 1, [7])],
)
def test_each_epoch_has_each_item_once(num_items, num_minibatches, sizes):
  indices, counts = minibatches(
    num_items=num_items, num_epochs=3, num_minibatches=num_minibatches
  )
  assert indices.shape == (3 * num_minibatches, max(sizes))
  np.testing.assert_array_equal(counts.sum(axis=1), sizes * 3)
  for epoch in range(3):
    rows = slice(epoch * num_minibatches, (epoch + 1) * num_minibatches)
    items = indices[rows][counts[rows]]
    np.testing.assert_array_equal(np.sort(items), np.arange(num_items))
  # Padding refers to valid items.
  assert np.all((indices >= 0) & (indices < num_items))


def test_order_is_new_in_each_epoch_and_follows_from_the_seed():
  sizes = {'num_items': 50, 'num_epochs': 3, 'num_minibatches': 1}
  first, _ = minibatches((1, 2), **sizes)
  assert len({tuple(row) for row in first}) == 3
  np.testing.assert_array_equal(minibatches((1, 2), **sizes)[0], first)
  for seed in ((1, 3), (2, 2)):
    assert np.any(minibatches(seed, **sizes)[0] != first)


@pytest.mark.parametrize('num_minibatches', [0, 6])
def test_wrong_number_is_named(num_minibatches):
  with pytest.raises(ValueError, match=r'in \[1, 5\], got'):
    minibatches(num_items=5, num_epochs=1, num_minibatches=num_minibatches)


def test_steps_count_each_item_once_in_each_epoch():
  # Seven unrolls of two steps; the last step of the last one did not happen.
  mask = np.ones([7, 2], bool)
  mask[6, 1] = False
  items = _Items(tf.range(7), tf.constant(mask))
  seen = tf.Variable(tf.zeros([7, 2], tf.int32))

  def take_step(minibatch):
    assert minibatch.mask.shape == [3, 2]  # Of 3, 2 and 2 items.
    counts = tf.cast(minibatch.mask, tf.int32)
    seen.scatter_add(tf.IndexedSlices(counts, minibatch.number))
    return {'num_steps': tf.cast(tf.reduce_sum(counts), tf.float32)}

  found = tf.function(
    lambda: learners.take_minibatch_steps(
      take_step, items, tf.constant([1, 2]), num_epochs=4, num_minibatches=3,
      metrics=['num_steps'],
    ),
    autograph=False, jit_compile=True,
  )()  # fmt: skip
  np.testing.assert_array_equal(seen, 4 * mask)
  # 13 steps happened, in three minibatches.
  np.testing.assert_allclose(found['num_steps'], 13 / 3, rtol=1e-6)
  assert found['gradient_steps'] == 12
