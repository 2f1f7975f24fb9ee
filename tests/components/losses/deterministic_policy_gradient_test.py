"""Tests of `components/losses/deterministic_policy_gradient.py`."""

import numpy as np
import pytest
import tensorflow as tf

from repertory.components import losses


@pytest.mark.parametrize(
  ('max_norm', 'expected'),
  [
    # |(3, 4)| = 5 and |(0, 0.5)| = 0.5.
    (None, [[3, 4], [0, 0.5]]),
    (1.0, [[0.6, 0.8], [0, 0.5]]),
    (100.0, [[3, 4], [0, 0.5]]),
  ],
)
def test_gradient_is_minus_that_of_the_value(max_norm, expected):
  action = tf.constant([[0.5, -0.5], [0.1, 0.2]])
  dqda = tf.constant([[3.0, 4.0], [0.0, 0.5]])
  with tf.GradientTape(persistent=True) as tape:
    tape.watch([action, dqda])
    loss = losses.deterministic_policy_loss(action, dqda, max_norm)
  # Of the mean over two rows.
  np.testing.assert_allclose(
    tape.gradient(loss, action), -np.array(expected) / 2, atol=1e-6
  )
  assert tape.gradient(loss, dqda) is None
  np.testing.assert_allclose(
    loss, 0.5 * np.sum(np.square(expected)) / 2, rtol=1e-5
  )


def test_a_small_slope_is_kept_beside_a_large_action():
  # In single precision 300 + 10⁻⁵ is 300.
  action = tf.constant([[300.0, -1.0]])
  dqda = np.array([[1e-5, -1e-9]], np.float32)
  with tf.GradientTape() as tape:
    tape.watch(action)
    loss = losses.deterministic_policy_loss(action, dqda)
  np.testing.assert_allclose(tape.gradient(loss, action), -dqda, rtol=1e-6)
  np.testing.assert_allclose(loss, 0.5 * (1e-10 + 1e-18), rtol=1e-6)


def test_no_slope_is_no_problem():
  loss = losses.deterministic_policy_loss(
    tf.ones([1, 2]), tf.zeros([1, 2]), 1.0
  )
  np.testing.assert_array_equal(loss, 0)


@pytest.mark.parametrize('max_norm', [None, 1.0])
def test_takes_arrays(max_norm):
  loss = losses.deterministic_policy_loss(
    np.ones([1, 2]), np.array([[0.6, 0.8]]), max_norm
  )
  np.testing.assert_allclose(loss, 0.5 * (0.6**2 + 0.8**2), rtol=1e-6)


@pytest.mark.parametrize('ones', [tf.ones, np.ones])
def test_refuses_shapes(ones):
  with pytest.raises(ValueError, match=r'same shape \[B, D\], got \(2,'):
    losses.deterministic_policy_loss(ones([2, 3]), ones([2, 1]))
  with pytest.raises(ValueError, match=r'same shape \[B, D\], got \(2,\)'):
    losses.deterministic_policy_loss(ones([2]), ones([2]))
