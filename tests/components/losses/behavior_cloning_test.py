"""Tests of `components/losses/behavior_cloning.py`."""

import numpy as np
import pytest
import tensorflow as tf

from repertory.components import losses

_A = [[0.5, -0.5], [0.1, 0.2]]
_DATA = [[0.0, 0.5], [0.1, -0.2]]
# (0.5² + 1² + 0 + 0.4²) / 4.
_DISTANCE = (0.25 + 1 + 0.16) / 4


def test_squared_cloning_loss():
  loss = losses.squared_cloning_loss(tf.constant(_A), tf.constant(_DATA))
  np.testing.assert_allclose(loss, _DISTANCE, rtol=1e-6)


def test_cross_entropy_cloning_loss():
  logits = tf.math.log(tf.constant([[0.5, 0.25, 0.25], [0.1, 0.1, 0.8]]))
  loss = losses.cross_entropy_cloning_loss(logits, tf.constant([0, 1]))
  np.testing.assert_allclose(loss, -np.log(0.5 * 0.1) / 2, rtol=1e-6)


def test_weighted_cloning_loss():
  log_prob, weights = tf.constant([-1.0, -3.0]), tf.constant([2.0, 0.5])
  with tf.GradientTape() as tape:
    tape.watch([log_prob, weights])
    loss = losses.weighted_cloning_loss(log_prob, weights)
  np.testing.assert_allclose(loss, (2 * 1 + 0.5 * 3) / 2)
  of_log_prob, of_weights = tape.gradient(loss, [log_prob, weights])
  np.testing.assert_allclose(of_log_prob, [-1, -0.25])
  assert of_weights is None


@pytest.mark.parametrize('unit', [1.0, 1e3])
def test_values_weigh_the_same_in_any_unit(unit):
  q, a = tf.constant([3.0, -1.0]) * unit, tf.constant(_A)
  with tf.GradientTape() as tape:
    tape.watch([q, a])
    loss = losses.td3_bc_policy_loss(q, a, tf.constant(_DATA), 2.5)
  # λ = 2.5 / mean(3, 1), of a mean value of 1.
  np.testing.assert_allclose(loss, _DISTANCE - 2.5 / 2 * 1, rtol=1e-6)
  dq, da = tape.gradient(loss, [q, a])
  # None flows through λ.
  np.testing.assert_allclose(dq * unit, [-2.5 / 2 / 2] * 2, rtol=1e-6)
  np.testing.assert_allclose(da, [[0.25, -0.5], [0, 0.2]], atol=1e-7)


def test_no_value_is_no_problem():
  a = tf.constant(_A)
  loss = losses.td3_bc_policy_loss(tf.zeros([2]), a, tf.constant(_DATA), 2.5)
  np.testing.assert_allclose(loss, _DISTANCE, rtol=1e-6)


def test_refuses_shapes():
  with pytest.raises(ValueError, match='a_data must have rank 2'):
    losses.squared_cloning_loss(tf.zeros([2, 1]), tf.zeros([2]))
  with pytest.raises(ValueError, match='q must have rank 1'):
    losses.td3_bc_policy_loss(
      tf.zeros([2, 1]), tf.zeros([2, 1]), tf.zeros([2, 1]), 1.0
    )
