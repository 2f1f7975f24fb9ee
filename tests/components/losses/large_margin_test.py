"""Tests of `components/losses/large_margin.py`."""

import numpy as np
import pytest
import tensorflow as tf

from repertory.components import losses


class TestLargeMarginGaps:
  def test_by_hand(self):
    q = tf.constant([[1.0, 3, 2], [1, 3, 2.5], [1, 3, 2], [0, 0, 0]])
    gaps = losses.large_margin_loss(q, tf.constant([1, 1, 2, 0], tf.int8), 0.8)
    # Above by enough; by 0.5 alone; below by 1; all alike.
    np.testing.assert_allclose(gaps, [0, 0.3, 1.8, 0.8], rtol=1e-6)

  def test_gradient_lifts_what_was_done_over_its_rival(self):
    q = tf.constant([[1.0, 3, 2.5], [1, 3, 2]])
    with tf.GradientTape() as tape:
      tape.watch(q)
      gaps = losses.large_margin_loss(q, tf.constant([1, 1]), 0.8)
    np.testing.assert_allclose(
      tape.gradient(gaps, q), [[0, -1, 1], [0, 0, 0]], atol=1e-7
    )

  def test_refuses_shapes(self):
    with pytest.raises(ValueError, match='q must have rank 2'):
      losses.large_margin_loss(tf.zeros([2]), tf.zeros([2], tf.int32), 0.8)
