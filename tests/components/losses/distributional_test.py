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
      lower, upper = math.floor(place), math.ceil(place)
      if lower == upper:
        result[b, lower] += p
      else:
        result[b, lower] += p * (upper - place)
        result[b, upper] += p * (place - lower)
  return result


class TestCategoricalProjection:
  @pytest.mark.parametrize(
    ('z_p', 'probs', 'expected'),
    [
      pytest.param([-1, 0, 1], [0.2, 0.3, 0.5], [0.2, 0.3, 0.5], id='the_same'),
      # ¼ of the way from 0 to 1.
      pytest.param([0.25, 0, 0], [1, 0, 0], [0, 0.75, 0.25], id='between'),
      pytest.param([-7, 7, 0], [0.2, 0.3, 0.5], [0.2, 0.5, 0.3], id='beyond'),
      pytest.param(
        [0.5, 0.5, 0.5], [0.2, 0.3, 0.5], [0, 0.5, 0.5], id='all_in_one_place'
      ),
      pytest.param(
        [-1, 1, 1], [0.2, 0.3, 0.5], [0.2, 0, 0.8], id='at_the_ends'
      ),
    ],
  )
  def test_by_hand(self, z_p, probs, expected):
    found = distributional.categorical_projection(
      constant([z_p]), constant([probs]), constant([-1, 0, 1])
    )
    np.testing.assert_allclose(found, [expected], atol=1e-6)

  @pytest.mark.parametrize('num_atoms', [2, 5, 51])
  @pytest.mark.parametrize('num_others', [1, 7, 51])
  @pytest.mark.parametrize('ends', [(-1, 1), (-1500, 0)])
  def test_equals_the_loop(self, num_atoms, num_others, ends):
    random = np.random.default_rng(0)
    z_q = np.linspace(ends[0], ends[1], num_atoms)
    width = ends[1] - ends[0]
    z_p = random.uniform(
      ends[0] - 0.3 * width, ends[1] + 0.3 * width, (9, num_others)
    )
    probs = softmax(random.normal(size=(9, num_others)))
    found = distributional.categorical_projection(
      *map(constant, (z_p, probs, z_q))
    )
    expected = project(z_p, probs, z_q)
    np.testing.assert_allclose(found, expected, atol=2e-5)
    np.testing.assert_allclose(np.sum(found, axis=-1), 1, atol=1e-5)

  def test_keeps_the_mean_within_the_support(self):
    random = np.random.default_rng(0)
    z_q = np.linspace(-10, 10, 51)
    z_p = random.uniform(-10, 10, (9, 20))
    probs = softmax(random.normal(size=(9, 20)))
    found = distributional.categorical_projection(
      *map(constant, (z_p, probs, z_q))
    )
    np.testing.assert_allclose(
      found.numpy() @ z_q, np.sum(z_p * probs, axis=-1), atol=1e-4
    )

  @pytest.mark.parametrize('jit_compile', [False, True])
  def test_no_probability_is_below_zero(self, jit_compile):
    # Atoms right at those of the support, and beyond the last one.
    call = tf.function(
      distributional.categorical_projection,
      jit_compile=jit_compile,
      autograph=False,
    )
    for low, high, size in [(-1000, 0, 101), (-0.1, 0.7, 51), (0, 1e-3, 7)]:
      z_q = tf.linspace(constant(low), constant(high), size)
      z_p = tf.stack([z_q, z_q * 1.0000002, z_q * 0.9999999, z_q + high])
      probs = tf.fill(z_p.shape, 1 / size)
      found = call(z_p, probs, z_q).numpy()
      assert found.min() >= 0
      np.testing.assert_allclose(found.sum(axis=-1), 1, atol=1e-5)

  @pytest.mark.parametrize('jit_compile', [False, True])
  @pytest.mark.parametrize('value', [np.nan, np.inf])
  def test_shows_what_is_not_finite(self, jit_compile, value):
    call = tf.function(
      distributional.categorical_projection,
      jit_compile=jit_compile,
      autograph=False,
    )
    probs = constant([[0.2, 0.3, 0.5], [0.2, value, 0.5]])
    found = call(tf.zeros([2, 3]), probs, constant([-1, 0, 1]))
    assert np.isfinite(found[0]).all()
    assert not np.isfinite(found[1]).all()

  def test_refuses_shapes(self):
    two = constant([[1, 2]])
    with pytest.raises(ValueError, match=r'z_q must have rank 1'):
      distributional.categorical_projection(two, two, two)


class TestCategoricalTDTargets:
  def test_by_hand(self):
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

  def test_no_gradient(self):
    inputs = list(map(constant, ([1], [0.9], [[1, 2, 3]], [0, 1, 2])))
    with tf.GradientTape() as tape:
      tape.watch(inputs)
      found = losses.categorical_td_targets(*inputs)
    assert tape.gradient(found, inputs) == [None] * 4


class TestCategoricalDivergence:
  def test_equals_numpy_and_its_gradient_is_the_cross_entropys(self):
    random = np.random.default_rng(0)
    p, logits = softmax(random.normal(size=(9, 5))), random.normal(size=(9, 5))
    q = softmax(logits)
    logits = constant(logits)
    with tf.GradientTape() as tape:
      tape.watch(logits)
      found = losses.categorical_divergence(constant(p), logits)
    np.testing.assert_allclose(
      found, np.sum(p * np.log(p / q), axis=-1), rtol=1e-4, atol=1e-6
    )
    np.testing.assert_allclose(
      tape.gradient(found, logits), q - p, rtol=1e-4, atol=1e-6
    )

  def test_certain_targets(self):
    # −log of the probability of the one that is certain: softmax(0, log 3).
    logits = constant([[0, math.log(3)], [1000, 0]])
    with tf.GradientTape() as tape:
      tape.watch(logits)
      found = losses.categorical_divergence(constant([[1, 0], [1, 0]]), logits)
    np.testing.assert_allclose(found, [math.log(4), 0], rtol=1e-6)
    np.testing.assert_allclose(
      tape.gradient(found, logits), [[-0.75, 0.75], [0, 0]], rtol=1e-6
    )

  def test_is_zero_where_they_are_equal(self):
    logits = constant(np.random.default_rng(0).normal(size=(9, 51)))
    found = losses.categorical_divergence(tf.nn.softmax(logits), logits)
    np.testing.assert_allclose(found, np.zeros(9), atol=1e-6)


class TestCategoricalMean:
  def test_by_hand(self):
    logits = constant([[0, math.log(3)], [0, 0]])
    found = losses.categorical_mean(logits, constant([-2, 6]))
    np.testing.assert_allclose(found, [0.25 * -2 + 0.75 * 6, 2], rtol=1e-6)
    of_actions = losses.categorical_mean(logits[None], constant([-2, 6]))
    np.testing.assert_array_equal(of_actions, found[None])
