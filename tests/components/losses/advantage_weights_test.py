"""Tests of `components/losses/advantage_weights.py`."""

import numpy as np
import pytest
import tensorflow as tf

from repertory.components import losses


def test_expectile_losses():
  found = losses.expectile_losses(tf.constant([[2.0, -2.0], [0.0, -1.0]]), 0.7)
  np.testing.assert_allclose(found, [[0.7 * 4, 0.3 * 4], [0, 0.3]], rtol=1e-6)


@pytest.mark.parametrize('expectile', [0.5, 0.7, 0.95])
def test_least_where_errors_above_and_below_balance(expectile):
  values = tf.constant([0.0, 1.0, 5.0, 6.0])
  grid = np.linspace(0, 6, 601)
  totals = [
    float(tf.reduce_sum(losses.expectile_losses(values - place, expectile)))
    for place in grid
  ]
  best = grid[int(np.argmin(totals))]
  above = np.maximum(values - best, 0).sum()
  below = np.maximum(best - values, 0).sum()
  np.testing.assert_allclose(
    expectile * above, (1 - expectile) * below, atol=0.02
  )


def test_exponential_weights():
  advantages = tf.constant([0.0, 1.0, -2.0, 1e30, -1e30])
  found = losses.exponential_weights(advantages, 3.0, 20.0)
  np.testing.assert_allclose(found, [1, 20, np.exp(-6), 20, 0], rtol=1e-5)
  found = losses.exponential_weights(advantages[:3], 0.5, 20.0)
  np.testing.assert_allclose(found, np.exp([0, 0.5, -1]), rtol=1e-6)


def test_binary_weights():
  found = losses.binary_weights(tf.constant([0.1, 0.0, -0.1, 5.0]))
  np.testing.assert_array_equal(found, [1, 0, 0, 1])
