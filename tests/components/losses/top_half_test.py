"""Tests of `components/losses/top_half.py`."""

import numpy as np
import pytest
import tensorflow as tf

from repertory.components import losses
from repertory.components.losses import top_half

# Two padded steps, one of which would be the best.
ADVANTAGES = np.array([[1.0, 9.0, -2.0], [np.log(3), 0.0, -1.0]], np.float32)
MASK = np.array([[1, 0, 1], [1, 0, 1]], np.bool_)


def constant(values):
  return tf.constant(values, tf.float32)


class TestBestHalf:
  @pytest.mark.parametrize(
    ('advantages', 'mask', 'expected'),
    [
      # Two of four.
      (ADVANTAGES, MASK, [[1, 0, 0], [1, 0, 0]]),
      # Two of three, and one of one.
      ([[5, 1, 3]], [[1, 1, 1]], [[1, 0, 1]]),
      ([[5, 1, 3]], [[0, 1, 0]], [[0, 1, 0]]),
      # Ties with the last one.
      ([[2, 1, 1, 1]], [[1, 1, 1, 1]], [[1, 1, 1, 1]]),
      ([[2, 2, 1, 1]], [[1, 1, 1, 1]], [[1, 1, 0, 0]]),
      ([[-1, -2, -3, -4]], [[1, 1, 1, 1]], [[1, 1, 0, 0]]),
      ([[5, 1]], [[0, 0]], [[0, 0]]),
    ],
  )
  def test_by_hand(self, advantages, mask, expected):
    found = top_half.top_half(constant(advantages), tf.cast(mask, tf.bool))
    np.testing.assert_array_equal(found, expected)

  def test_refuses_shapes(self):
    with pytest.raises(ValueError, match='mask must have shape'):
      top_half.top_half(constant([[1.0]]), tf.constant([[True, False]]))


class TestTemperBestHalf:
  def test_by_hand(self):
    # Of log 3 and 1 at η = 1: 3 and e.
    found = losses.vmpo_e_step(
      constant(ADVANTAGES), tf.constant(MASK), constant(1), 0.1
    )
    p = 3 / (3 + np.e)
    np.testing.assert_allclose(
      found.probs, [[1 - p, 0, 0], [p, 0, 0]], rtol=1e-5
    )
    kl = p * np.log(2 * p) + (1 - p) * np.log(2 * (1 - p))
    np.testing.assert_allclose(found.kl, kl, rtol=1e-3)
    np.testing.assert_allclose(
      found.dual_loss, 0.1 + np.log((3 + np.e) / 2), rtol=1e-5
    )

  @pytest.mark.parametrize('shift', [0.0, -100.0])
  def test_gradient_of_the_dual_is_what_is_left_of_the_bound(self, shift):
    random = np.random.default_rng(0)
    advantages = constant(random.normal(size=(5, 7)) + shift)
    mask = tf.constant(random.random((5, 7)) < 0.8)
    for eta in (0.3, 1.0, 5.0):
      temperature = constant(eta)
      with tf.GradientTape() as tape:
        tape.watch([temperature, advantages])
        found = losses.vmpo_e_step(advantages, mask, temperature, 0.1)
      slope, none = tape.gradient(found.dual_loss, [temperature, advantages])
      np.testing.assert_allclose(slope, 0.1 - found.kl, atol=1e-3)
      assert none is None
      np.testing.assert_allclose(tf.reduce_sum(found.probs), 1, rtol=1e-5)

  @pytest.mark.parametrize('jit_compile', [False, True])
  def test_of_no_steps_nothing_is_learned(self, jit_compile):
    call = tf.function(losses.vmpo_e_step, jit_compile=jit_compile)
    found = call(
      constant([[1e30, np.nan]]), tf.constant([[False] * 2]), constant(0.5), 0.1
    )
    np.testing.assert_array_equal(found.probs, [[0, 0]])
    np.testing.assert_allclose(found.kl, 0, atol=1e-6)
    np.testing.assert_allclose(found.dual_loss, 0.5 * 0.1, rtol=1e-5)


def test_weighted_steps_loss():
  weights, log_probs = constant([[0.2, 0.8, 0]]), constant([[-1, -3, -np.inf]])
  with tf.GradientTape() as tape:
    tape.watch([weights, log_probs])
    found = losses.vmpo_policy_loss(
      weights, log_probs, tf.constant([[True, True, False]])
    )
  np.testing.assert_allclose(found, 0.2 + 2.4, rtol=1e-6)
  none, gradient = tape.gradient(found, [weights, log_probs])
  assert none is None
  np.testing.assert_allclose(gradient, [[-0.2, -0.8, 0]], rtol=1e-6)
