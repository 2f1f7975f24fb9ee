"""Tests of `components/losses/maximum_a_posteriori.py`."""

import numpy as np
import pytest
import tensorflow as tf

from repertory.components import losses


def constant(values):
  return tf.constant(values, tf.float32)


def uniform(size, num_samples):
  return tf.fill([size, num_samples], -np.log(num_samples).astype(np.float32))


class TestTemper:
  def test_by_hand(self):
    # Values log 3 and 0 at η = 1, of two samples: ¾ and ¼.
    found = losses.mpo_e_step(
      constant([[np.log(3), 0]]), uniform(1, 2), constant(1), 0.1
    )
    np.testing.assert_allclose(found.probs, [[0.75, 0.25]], rtol=1e-6)
    kl = 0.75 * np.log(1.5) + 0.25 * np.log(0.5)
    np.testing.assert_allclose(found.kl, [kl], rtol=1e-5)
    # The mean of 3 and 1 is 2.
    np.testing.assert_allclose(found.dual_loss, 0.1 + np.log(2), rtol=1e-6)

  def test_prior_of_all_actions(self):
    # (0.8, 0.2) times (1, 4) is (0.8, 0.8).
    found = losses.mpo_e_step(
      constant([[0, 2 * np.log(4)]]), constant(np.log([[0.8, 0.2]])),
      constant(2), 0.1,
    )  # fmt: skip
    np.testing.assert_allclose(found.probs, [[0.5, 0.5]], rtol=1e-5)
    np.testing.assert_allclose(
      found.dual_loss, 2 * (0.1 + np.log(1.6)), rtol=1e-5
    )

  def test_gradient_of_the_dual_is_what_is_left_of_the_bound(self):
    # dg/dη = ε − KL, at any temperature.
    q = constant(np.random.default_rng(0).normal(size=(5, 4)))
    for eta in (0.3, 1.0, 5.0):
      temperature = constant(eta)
      with tf.GradientTape() as tape:
        tape.watch(temperature)
        found = losses.mpo_e_step(q, uniform(5, 4), temperature, 0.1)
      np.testing.assert_allclose(
        tape.gradient(found.dual_loss, temperature),
        0.1 - np.mean(found.kl),
        atol=1e-5,
      )

  def test_at_the_minimum_the_bound_is_met(self):
    random = np.random.default_rng(1)
    q, prior = random.normal(size=(40, 6)), random.dirichlet(np.ones(6), 40)

    def mpo_e_step(eta):
      return losses.mpo_e_step(
        constant(q), constant(np.log(prior)), constant(eta), 0.2
      )

    etas = np.linspace(0.3, 4, 400)
    best = etas[np.argmin([mpo_e_step(eta).dual_loss for eta in etas])]
    assert 0.31 < best < 3.9
    np.testing.assert_allclose(np.mean(mpo_e_step(best).kl), 0.2, atol=0.01)

  @pytest.mark.parametrize('jit_compile', [False, True])
  def test_is_finite_at_the_floor(self, jit_compile):
    call = tf.function(losses.mpo_e_step, jit_compile=jit_compile)
    found = call(
      constant([[1e3, -1e3, 999]]), uniform(1, 3), constant(2e-8), 0.1
    )
    np.testing.assert_array_equal(found.probs, [[1, 0, 0]])
    np.testing.assert_allclose(found.kl, [np.log(3)], rtol=1e-6)
    assert np.isfinite(found.dual_loss)

  def test_only_the_temperature_has_a_gradient(self):
    q, log_prior, temperature = constant([[1, 2]]), uniform(1, 2), constant(1)
    inputs = [q, log_prior, temperature]
    with tf.GradientTape(persistent=True) as tape:
      tape.watch(inputs)
      found = losses.mpo_e_step(q, log_prior, temperature, 0.1)
    gradients = tape.gradient(found.dual_loss, inputs)
    assert gradients[:2] == [None, None]
    assert gradients[2] is not None
    assert tape.gradient(found.probs, inputs) == [None] * 3

  def test_refuses_shapes(self):
    with pytest.raises(ValueError, match='log_prior must have rank 2'):
      losses.mpo_e_step(uniform(1, 2), constant([1]), constant(1), 0.1)


def test_weighted_likelihood_loss():
  # −½ ((0.2 · −1 + 0.8 · −3) + (1 · −2)).
  found = losses.mpo_policy_loss(
    constant([[0.2, 0.8], [1, 0]]), constant([[-1, -3], [-2, -5]])
  )
  np.testing.assert_allclose(found, 0.5 * (0.2 + 2.4 + 2), rtol=1e-6)


class TestKLPenalty:
  def test_of_each_number(self):
    # Mean divergences 2 and 1; prices 3 and 5; bound 0.5.
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
    # Lowering the loss raises prices where the bound is broken.
    np.testing.assert_allclose(tape.gradient(dual_loss, alpha), [-1.5, -0.5])
    assert tape.gradient(dual_loss, kl) is None

  def test_refuses_shapes(self):
    with pytest.raises(ValueError, match='alpha must have rank 1'):
      losses.mpo_kl_loss(constant([[1]]), constant(4), 0.5)


def test_categorical_mixture():
  random = np.random.default_rng(2)
  probs, weights = random.dirichlet(np.ones(4), (2, 3)), [[0.5, 0.3, 0.2]] * 2
  # Logits may be off by a constant of each distribution.
  logits = np.log(probs) + random.normal(size=(2, 3, 1))
  found = losses.categorical_mixture(
    constant(logits), constant(np.log(weights))
  )
  expected = np.einsum('bnm,bn->bm', probs, np.array(weights))
  np.testing.assert_allclose(np.exp(found), expected, rtol=1e-4)
