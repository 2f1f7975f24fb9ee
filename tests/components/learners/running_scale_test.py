"""Tests of `components/learners/running_scale.py`."""

import numpy as np
import pytest
import tensorflow as tf

from repertory.components import learners


def test_is_1_at_first():
  scale = learners.RunningScale()
  np.testing.assert_allclose(scale(), 1, rtol=1e-6)
  scale.update(tf.constant([[5.0]]), tf.constant([[False]]))
  np.testing.assert_allclose(scale(), 1, rtol=1e-6)


@pytest.mark.parametrize('jit_compile', [False, True])
def test_is_the_deviation_of_all_that_counts(jit_compile):
  random = np.random.default_rng(0)
  scale, seen = learners.RunningScale(), []
  update = tf.function(scale.update, jit_compile=jit_compile, autograph=False)
  for _ in range(3):
    returns = random.normal(random.normal() * 50, 7, [6, 4]).astype(np.float32)
    mask = random.uniform(size=[6, 4]) < 0.7
    seen.append(returns[mask])
    returns[~mask] = np.nan
    update(tf.constant(returns), tf.constant(mask))
    deviation = np.concatenate(seen).astype(np.float64).std()
    np.testing.assert_allclose(scale(), deviation, rtol=1e-6)
  assert scale().dtype == tf.float32


def test_of_equal_ones_is_above_0():
  scale = learners.RunningScale()
  scale.update(tf.fill([3, 2], 4.0), tf.ones([3, 2], tf.bool))
  np.testing.assert_allclose(scale(), 1e-4, rtol=1e-6)


def test_its_numbers_are_variables_that_are_not_trained():
  scale = learners.RunningScale()
  assert len(scale.variables) == 3
  assert not scale.trainable_variables
