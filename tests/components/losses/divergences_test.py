"""Tests of `components/losses/divergences.py`."""

import numpy as np
import tensorflow as tf

from repertory.components import losses


def constant(values):
  return tf.constant(values, tf.float32)


def textbook_kl(mean_p, scale_p, mean_q, scale_q):
  return (
    np.log(scale_q / scale_p)
    + (scale_p**2 + (mean_p - mean_q) ** 2) / (2 * scale_q**2)
    - 0.5
  )


class TestGaussianKL:
  def test_is_the_textbooks(self):
    random = np.random.default_rng(0)
    means, scales = (
      random.normal(size=(2, 5, 3)),
      random.uniform(0.1, 2, (2, 5, 3)),
    )
    arrays = means[0], scales[0], means[1], scales[1]
    found = losses.gaussian_kl(*map(constant, arrays))
    np.testing.assert_allclose(found, textbook_kl(*arrays), rtol=1e-4)

  def test_is_exact_where_deviations_are_nearly_the_same(self):
    # To the second order x² for σ_p = (1 + x) σ_q, of which float32 leaves
    # nothing if the textbook's terms, of size ½, cancel.
    scale_q = np.float32(0.3)
    scale_p = np.float32(scale_q * (1 - 1e-3))
    call = tf.function(losses.gaussian_kl, jit_compile=True)
    found = call(*map(constant, ([0], [scale_p], [0], [scale_q])))
    expected = textbook_kl(0, np.float64(scale_p), 0, np.float64(scale_q))
    np.testing.assert_allclose(found, [expected], rtol=5e-3)


class TestGaussian:
  def test_log_prob_and_entropy(self):
    # Of two numbers: log N(1; 0, 2) + log N(−1; 0.5, 1).
    expected = (
      -1 / 8
      - np.log(2 * np.sqrt(2 * np.pi))
      - 2.25 / 2
      - np.log(np.sqrt(2 * np.pi))
    )
    found = losses.gaussian_log_prob(
      constant([[1, -1]]), constant([[0, 0.5]]), constant([[2, 1]])
    )
    np.testing.assert_allclose(found, [expected], rtol=1e-6)
    expected = 0.5 * np.log(2 * np.pi * np.e * 4) + 0.5 * np.log(
      2 * np.pi * np.e
    )
    found = losses.gaussian_entropy(constant([[2, 1]]))
    np.testing.assert_allclose(found, [expected], rtol=1e-6)


class TestCategoricalKL:
  def test_by_hand(self):
    # Of (½, ½) and (¼, ¾): ½ log 2 + ½ log ⅔. Logits may be off by a constant.
    p, q = constant([[5, 5]]), constant(np.log([[1, 3]]))
    expected = 0.5 * np.log(2) + 0.5 * np.log(2 / 3)
    np.testing.assert_allclose(
      losses.categorical_kl(p, q), [expected], rtol=1e-5
    )
    np.testing.assert_allclose(losses.categorical_kl(q, q), [0], atol=1e-7)
