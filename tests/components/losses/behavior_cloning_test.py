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
def test_td3_bc_policy_loss_is_the_same_in_any_unit(unit):
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
  # Values of 0 leave the distance.
  loss = losses.td3_bc_policy_loss(0 * q, a, tf.constant(_DATA), 2.5)
  np.testing.assert_allclose(loss, _DISTANCE, rtol=1e-6)


def test_expectile_losses():
  found = losses.expectile_losses(tf.constant([[2.0, -2.0], [0.0, -1.0]]), 0.7)
  np.testing.assert_allclose(found, [[0.7 * 4, 0.3 * 4], [0, 0.3]], rtol=1e-6)


def test_exponential_weights():
  advantages = tf.constant([0.0, 1.0, -2.0, 1e30, -1e30])
  found = losses.exponential_weights(advantages, 3.0, 20.0)
  np.testing.assert_allclose(found, [1, 20, np.exp(-6), 20, 0], rtol=1e-5)


def test_binary_weights():
  found = losses.binary_weights(tf.constant([0.1, 0.0, -0.1, 5.0]))
  np.testing.assert_array_equal(found, [1, 0, 0, 1])
