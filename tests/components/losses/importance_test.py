"""Tests of `components/losses/importance.py`."""

import numpy as np
import tensorflow as tf

from repertory.components import losses


def test_values_and_gradient():
  target = tf.Variable([[0.0], [1.0], [1e5]])
  behavior = tf.constant([[1.0], [0.5], [-1e5]])
  with tf.GradientTape() as tape:
    ratios = losses.importance_ratios(
      target, behavior, tf.constant([[True], [True], [False]])
    )
    total = tf.reduce_sum(ratios)
  expected = [np.exp(-1), np.exp(0.5), 1]
  np.testing.assert_allclose(ratios[:, 0], expected, rtol=1e-6)
  # The masked ratio is infinite, and yet gives no NaN.
  np.testing.assert_allclose(
    tape.gradient(total, target)[:, 0], [*expected[:2], 0], rtol=1e-6
  )


def test_is_finite_however_unlikely_an_action_is():
  behavior = tf.zeros([3, 1])
  mask = tf.ones([3, 1], tf.bool)
  target = tf.Variable([[-110.0], [95.0], [0.5]])
  with tf.GradientTape() as tape:
    ratios = losses.importance_ratios(target, behavior, mask)
    # min(ρ A, 1.2 A) of a likelier action is free of ρ if A > 0.
    loss = losses.clipped_surrogate_loss(
      ratios, tf.constant([[-1.0], [2.0], [-1.0]]), mask, 0.2
    )
  expected = [0, np.exp(20), np.exp(0.5)]
  np.testing.assert_allclose(ratios[:, 0], expected, rtol=1e-5)
  # Of the first action ρ is below 0.8, so the bound counts.
  surrogates = [-0.8, 1.2 * 2, -np.exp(0.5)]
  np.testing.assert_allclose(loss, -np.mean(surrogates), rtol=1e-5)
  np.testing.assert_allclose(
    tape.gradient(loss, target)[:, 0], [0, 0, np.exp(0.5) / 3], rtol=1e-5
  )
  assert np.isfinite(losses.approximate_kl(ratios, mask))
