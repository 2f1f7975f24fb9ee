"""Tests of `components/losses/conservative_q.py`."""

import math

import numpy as np
import pytest
import tensorflow as tf

from repertory.components import losses


def constant(values):
  return tf.constant(values, tf.float32)


class TestConservativeGaps:
  def test_by_hand(self):
    # Densities 1/2 and 1/4: (e^1 / (1/2) + e^2 / (1/4)) / 2.
    gaps = losses.conservative_q_loss(
      constant([[1, 2]]), constant([[math.log(0.5), math.log(0.25)]]),
      constant([3]),
    )  # fmt: skip
    expected = math.log((2 * math.e + 4 * math.e**2) / 2) - 3
    np.testing.assert_allclose(gaps, [expected], rtol=1e-6)

  def test_of_all_actions_it_is_the_softmax(self):
    q = constant([[1, 5, -2], [0, 0, 0]])
    log_prob = tf.fill([2, 3], -math.log(3))
    gaps = losses.conservative_q_loss(q, log_prob, constant([5, 0]))
    expected = [np.log(np.sum(np.exp([1, 5, -2]))) - 5, math.log(3)]
    np.testing.assert_allclose(gaps, expected, rtol=1e-5, atol=1e-6)

  def test_gradient_is_what_is_preferred_less_what_was_done(self):
    q, q_data = constant([[1, 3]]), constant([2])
    with tf.GradientTape() as tape:
      tape.watch([q, q_data])
      gap = losses.conservative_q_loss(q, constant([[0, 0]]), q_data)
    of_q, offline = tape.gradient(gap, [q, q_data])
    share = 1 / (1 + math.exp(-2))
    np.testing.assert_allclose(of_q, [[1 - share, share]], rtol=1e-5)
    np.testing.assert_allclose(offline, [-1])

  def test_refuses_shapes(self):
    with pytest.raises(ValueError, match='q_data must have rank 1'):
      losses.conservative_q_loss(*[constant([[1, 2]])] * 3)
