"""Tests of `components/networks/moments.py`."""

import numpy as np
import pytest
import tensorflow as tf

from repertory.components.networks import moments


def arrays(of_some):
  return [x.numpy() for x in of_some]


def of(values):
  """The moments of numbers `[N]`."""
  leaf = tf.constant(np.asarray(values, np.float32)[None])
  return moments.of_batch(leaf, tf.ones(leaf.shape, tf.bool))


def test_by_hand():
  # 1, 3: mean 2, variance 1. With 8: mean 4, (9 + 1 + 16) / 3.
  first = of([1, 3])
  np.testing.assert_allclose(arrays(first), (2, 2, 1))
  for merged in (moments.merge(first, of([8])), moments.merge(of([8]), first)):
    np.testing.assert_allclose(arrays(merged), (3, 4, 26 / 3))


@pytest.mark.parametrize('shape', [(), (2,), (2, 3)])
def test_batches_together_are_one(shape):
  random = np.random.default_rng(0)
  zero = tf.zeros([], tf.float64)
  merged, seen = moments.Moments(zero, zero, zero), []
  for size in (4, 7, 2):
    x = random.normal(random.normal() * 9, 2, [size, 5, *shape])
    mask = random.uniform(size=[size, 5]) < 0.6
    seen.append(x[mask])
    x[~mask] = np.nan  # It is masked.
    new = moments.of_batch(tf.constant(x), tf.constant(mask))
    merged = moments.merge(merged, new)
  seen = np.concatenate(seen)
  assert merged.size.numpy() == len(seen)
  np.testing.assert_allclose(merged.mean, seen.mean(axis=0), rtol=1e-12)
  np.testing.assert_allclose(merged.variance, seen.var(axis=0), rtol=1e-12)


def test_nothing_new_changes_nothing():
  before, nothing = of([1, 3]), of([])
  np.testing.assert_array_equal(arrays(nothing), (0, 0, 0))
  merged = moments.merge(before, nothing)
  np.testing.assert_array_equal(arrays(merged), arrays(before))
