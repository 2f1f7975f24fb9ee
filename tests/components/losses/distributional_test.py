"""Tests of `components/losses/distributional.py`."""

import math

import numpy as np
import pytest
import tensorflow as tf

from repertory.components import losses
from repertory.components.losses import distributional


def constant(values):
  return tf.constant(values, tf.float32)


def softmax(logits):
  powers = np.exp(logits - np.max(logits, axis=-1, keepdims=True))
  return powers / powers.sum(axis=-1, keepdims=True)


def project(z_p, probs, z_q):
  """https://arxiv.org/abs/1707.06887, algorithm 1: shares each probability."""
  spacing, result = z_q[1] - z_q[0], np.zeros([len(z_p), len(z_q)])
  for b in range(len(z_p)):
    for atom, p in zip(z_p[b], probs[b]):
      place = (min(max(atom, z_q[0]), z_q[-1]) - z_q[0]) / spacing
      lower = min(math.floor(place), len(z_q) - 2)
      result[b, lower] += p * (lower + 1 - place)
      result[b, lower + 1] += p * (place - lower)
  return result


class TestCategoricalProjection:
  @pytest.mark.parametrize(('num_atoms', 'ends'), [(2, (-1, 1)), (51, (-9, 0))])
  def test_equals_the_loop(self, num_atoms, ends):
    random = np.random.default_rng(0)
    z_q = np.linspace(ends[0], ends[1], num_atoms)
    width = ends[1] - ends[0]
    z_p = random.uniform(ends[0] - 0.3 * width, ends[1] + 0.3 * width, (9, 7))
    z_p[0, :2] = z_q[:2]
    probs = softmax(random.normal(size=(9, 7)))
    found = distributional.categorical_projection(
      *map(constant, (z_p, probs, z_q))
    )
    np.testing.assert_allclose(found, project(z_p, probs, z_q), atol=2e-5)

  def test_stays_a_probability_unless_it_is_not_finite(self):
    # Atoms right at those of the support, and beyond the last one.
    call = tf.function(
      distributional.categorical_projection, jit_compile=True, autograph=False
    )
    z_q = tf.linspace(constant(-0.1), constant(0.7), 51)
    z_p = tf.stack([z_q, z_q * 1.0000002, z_q * 0.9999999, z_q + 1, z_q])
    probs = np.full(z_p.shape, 1 / 51, np.float32)
    probs[-1, 3] = np.nan
    found = call(z_p, probs, z_q).numpy()
    assert found[:-1].min() >= 0
    np.testing.assert_allclose(found[:-1].sum(axis=-1), 1, atol=1e-5)
    assert not np.isfinite(found[-1]).all()


def test_categorical_td_targets():
  # The next value is 2 or 4 with probability ½: 1 + ½ · {2, 4} = {2, 3}.
  logits = constant([[-50, -50, 0, -50, 0]] * 3)
  found = losses.categorical_td_targets(
    constant([1, 1, 0.25]), constant([0.5, 0, 0.5]), logits,
    constant([0, 1, 2, 3, 4]),
  )  # fmt: skip
  expected = [
    [0, 0, 0.5, 0.5, 0],
    [0, 1, 0, 0, 0],  # After the end the reward alone counts.
    # 1.25 and 2.25, each with probability ½.
    [0, 0.375, 0.375 + 0.125, 0.125, 0],
  ]
  np.testing.assert_allclose(found, expected, atol=1e-6)


def test_categorical_mixture_targets():
  random = np.random.default_rng(0)
  r_t, discount_t = random.normal(size=5), random.uniform(size=5)
  logits, bonuses = random.normal(size=(5, 3, 7)), random.uniform(0, 2, (5, 3))
  weights, z = softmax(random.normal(size=(5, 3))), np.linspace(-2, 3, 7)
  found = losses.categorical_mixture_targets(
    *map(constant, (r_t, discount_t, logits, weights, bonuses, z))
  )
  z_p = r_t[:, None, None] + discount_t[:, None, None] * (
    z + bonuses[..., None]
  )
  probs = weights[..., None] * softmax(logits)
  expected = project(z_p.reshape(5, -1), probs.reshape(5, -1), z)
  np.testing.assert_allclose(found, expected, atol=1e-5)


def test_categorical_divergence():
  random = np.random.default_rng(0)
  p, logits = softmax(random.normal(size=(9, 5))), random.normal(size=(9, 5))
  p[0] = [1, 0, 0, 0, 0]
  q = softmax(logits)
  logits = constant(logits)
  with tf.GradientTape() as tape:
    tape.watch(logits)
    found = losses.categorical_divergence(constant(p), logits)
  expected = np.sum(p * np.log(np.where(p, p, 1) / q), axis=-1)
  np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)
  # That of the cross-entropy.
  np.testing.assert_allclose(
    tape.gradient(found, logits), q - p, rtol=1e-4, atol=1e-6
  )


def test_categorical_mean():
  logits = constant([[0, math.log(3)], [0, 0]])
  found = losses.categorical_mean(logits[None], constant([-2, 6]))
  np.testing.assert_allclose(found, [[0.25 * -2 + 0.75 * 6, 2]], rtol=1e-6)


def test_quantile_midpoints():
  np.testing.assert_allclose(
    losses.quantile_midpoints(4), [1 / 8, 3 / 8, 5 / 8, 7 / 8], rtol=1e-6
  )


class TestQuantileHuber:
  @pytest.mark.parametrize('threshold', [0.3, 1e6])
  def test_equals_the_loop_and_its_gradient(self, threshold):
    """https://arxiv.org/abs/1806.06923, equation 3."""
    random = np.random.default_rng(0)
    thetas, targets = random.normal(size=(3, 4)), random.normal(size=(3, 6))
    taus = random.uniform(size=(3, 4))
    quantiles = constant(thetas)
    with tf.GradientTape() as tape:
      tape.watch(quantiles)
      found = losses.quantile_huber(
        quantiles, constant(taus), constant(targets), threshold
      )
    expected, slopes = np.zeros([3]), np.zeros([3, 4])
    for b, i, j in np.ndindex(3, 4, 6):
      u = targets[b, j] - thetas[b, i]
      huber = 0.5 * u**2
      if abs(u) > threshold:
        huber = threshold * (abs(u) - 0.5 * threshold)
      weight = abs(taus[b, i] - (u < 0)) / threshold / 6
      expected[b] += weight * huber
      slopes[b, i] -= weight * np.clip(u, -threshold, threshold)
    np.testing.assert_allclose(found, expected, rtol=1e-4)
    np.testing.assert_allclose(
      tape.gradient(found, quantiles), slopes, rtol=1e-4, atol=1e-12
    )
