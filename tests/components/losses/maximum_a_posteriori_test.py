"""Tests of `components/losses/maximum_a_posteriori.py`."""

import numpy as np
import pytest
import tensorflow as tf

from repertory.components import losses
from repertory.components.losses import maximum_a_posteriori

# Two padded steps, one of which would be the best.
_ADVANTAGES = np.array([[1.0, 9.0, -2.0], [np.log(3), 0.0, -1.0]])
_MASK = np.array([[1, 0, 1], [1, 0, 1]], np.bool_)


def constant(values):
  return tf.constant(values, tf.float32)


def uniform(size, num_samples):
  return tf.fill([size, num_samples], -np.log(num_samples).astype(np.float32))


class TestMPO:
  def test_e_step_by_hand(self):
    # Values log 3 and 0 at η = 1, of two samples: ¾ and ¼.
    found = losses.mpo_e_step(
      constant([[np.log(3), 0]]), uniform(1, 2), constant(1), 0.1
    )
    np.testing.assert_allclose(found.probs, [[0.75, 0.25]], rtol=1e-6)
    kl = 0.75 * np.log(1.5) + 0.25 * np.log(0.5)
    np.testing.assert_allclose(found.kl, [kl], rtol=1e-5)
    # The mean of 3 and 1 is 2.
    np.testing.assert_allclose(found.dual_loss, 0.1 + np.log(2), rtol=1e-6)

  def test_gradient_of_the_dual_is_the_bound_less_the_divergence(self):
    q = constant(np.random.default_rng(0).normal(size=(5, 4)))
    for eta in (0.3, 5.0):
      temperature = constant(eta)
      with tf.GradientTape() as tape:
        tape.watch(temperature)
        found = losses.mpo_e_step(q, uniform(5, 4), temperature, 0.1)
      np.testing.assert_allclose(
        tape.gradient(found.dual_loss, temperature),
        0.1 - np.mean(found.kl),
        atol=1e-5,
      )

  def test_e_step_is_finite_at_the_least_temperature(self):
    found = losses.mpo_e_step(
      constant([[1e3, -1e3, 999]]), uniform(1, 3), constant(2e-8), 0.1
    )
    np.testing.assert_array_equal(found.probs, [[1, 0, 0]])
    np.testing.assert_allclose(found.kl, [np.log(3)], rtol=1e-6)
    assert np.isfinite(found.dual_loss)

  def test_policy_loss(self):
    # −½ ((0.2 · −1 + 0.8 · −3) + (1 · −2)).
    found = losses.mpo_policy_loss(
      constant([[0.2, 0.8], [1, 0]]), constant([[-1, -3], [-2, -5]])
    )
    np.testing.assert_allclose(found, 0.5 * (0.2 + 2.4 + 2), rtol=1e-6)

  def test_kl_loss(self):
    # Mean divergences 2 and 1; multipliers 3 and 5; bound 0.5.
    kl, alpha = constant([[1, 0], [3, 2]]), constant([3, 5])
    with tf.GradientTape(persistent=True) as tape:
      tape.watch([kl, alpha])
      penalty, dual_loss = losses.mpo_kl_loss(kl, alpha, 0.5)
    np.testing.assert_allclose(penalty, 3 * 2 + 5 * 1)
    np.testing.assert_allclose(dual_loss, 3 * (0.5 - 2) + 5 * (0.5 - 1))
    np.testing.assert_allclose(
      tape.gradient(penalty, kl), [[1.5, 2.5], [1.5, 2.5]]
    )
    assert tape.gradient(penalty, alpha) is None
    # Lowering the loss raises multipliers where the bound is broken.
    np.testing.assert_allclose(tape.gradient(dual_loss, alpha), [-1.5, -0.5])
    assert tape.gradient(dual_loss, kl) is None

  def test_categorical_mixture(self):
    random = np.random.default_rng(2)
    probs, weights = random.dirichlet(np.ones(4), (2, 3)), [[0.5, 0.3, 0.2]] * 2
    # Logits may be off by a constant of each distribution.
    logits = np.log(probs) + random.normal(size=(2, 3, 1))
    found = losses.categorical_mixture(
      constant(logits), constant(np.log(weights))
    )
    expected = np.einsum('bnm,bn->bm', probs, np.array(weights))
    np.testing.assert_allclose(np.exp(found), expected, rtol=1e-4)


class TestVMPO:
  @pytest.mark.parametrize(
    ('advantages', 'mask', 'expected'),
    [
      (_ADVANTAGES, _MASK, [[1, 0, 0], [1, 0, 0]]),
      # Two of three, and one of one.
      ([[5, 1, 3]], [[1, 1, 1]], [[1, 0, 1]]),
      ([[5, 1, 3]], [[0, 1, 0]], [[0, 1, 0]]),
      # Ties with the last one.
      ([[2, 1, 1, 1]], [[1, 1, 1, 1]], [[1, 1, 1, 1]]),
      ([[5, 1]], [[0, 0]], [[0, 0]]),
    ],
  )
  def test_top_half(self, advantages, mask, expected):
    found = maximum_a_posteriori.top_half(
      constant(advantages), tf.cast(mask, tf.bool)
    )
    np.testing.assert_array_equal(found, expected)

  def test_e_step_by_hand(self):
    # Of log 3 and 1 at η = 1: 3 and e.
    found = losses.vmpo_e_step(
      constant(_ADVANTAGES), tf.constant(_MASK), constant(1), 0.1
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

  def test_e_step_without_steps(self):
    found = losses.vmpo_e_step(
      constant([[1e30, np.nan]]), tf.constant([[False] * 2]), constant(0.5), 0.1
    )
    np.testing.assert_array_equal(found.probs, [[0, 0]])
    np.testing.assert_allclose(found.kl, 0, atol=1e-6)
    np.testing.assert_allclose(found.dual_loss, 0.5 * 0.1, rtol=1e-5)

  def test_policy_loss(self):
    weights, log_probs = (
      constant([[0.2, 0.8, 0]]),
      constant([[-1, -3, -np.inf]]),
    )
    with tf.GradientTape() as tape:
      tape.watch(log_probs)
      found = losses.vmpo_policy_loss(
        weights, log_probs, tf.constant([[True, True, False]])
      )
    np.testing.assert_allclose(found, 0.2 + 2.4, rtol=1e-6)
    np.testing.assert_allclose(
      tape.gradient(found, log_probs), [[-0.2, -0.8, 0]], rtol=1e-6
    )
