"""Tests of `components/losses/clipped_double_q.py`."""

import numpy as np
import pytest
import tensorflow as tf

from repertory.components import losses


def constant(values):
  return tf.constant(values, tf.float32)


def test_by_hand():
  targets = losses.clipped_double_q_targets(
    r_t=constant([1, 1, -2]),
    discount_t=constant([0.5, 0.0, 1.0]),
    q_t=constant([[3, 2], [3, 2], [-1, 7]]),
  )
  # The least value counts, and after the end none.
  np.testing.assert_array_equal(targets, [1 + 0.5 * 2, 1, -2 - 1])


def test_is_the_soft_target_without_a_temperature():
  random = np.random.default_rng(0)
  r, discount, log_prob = map(constant, random.normal(size=(3, 7)))
  q = constant(random.normal(size=(7, 3)))
  least = tf.reduce_min(q, axis=-1, keepdims=True)
  soft = losses.soft_q_targets(r, discount, least, log_prob, constant(0.0))
  np.testing.assert_array_equal(
    losses.clipped_double_q_targets(r, discount, q), soft[:, 0]
  )


def test_no_gradient_flows():
  q = constant([[3, 2]])
  with tf.GradientTape() as tape:
    tape.watch(q)
    targets = losses.clipped_double_q_targets(constant([1]), constant([1]), q)
  assert tape.gradient(targets, q) is None


def test_refuses_shapes():
  with pytest.raises(ValueError, match='q_t'):
    losses.clipped_double_q_targets(constant([1]), constant([1]), constant([1]))
