"""Tests of inverse CDF sampling, against a linear search."""

import numpy as np
import pytest
import tensorflow as tf

from repertory.components.distributions import inverse_cdf


def _compiled(jit_compile):
  @tf.function(jit_compile=jit_compile, autograph=False)
  def compute(weights, numbers):
    sums = tf.cumsum(weights, axis=-1)
    return inverse_cdf.find(sums, weights, numbers)

  return compute


def _search(weights, number):
  """Returns the index where the running sum exceeds a number."""
  total = 0.0
  for place, weight in enumerate(weights):
    total += weight
    if total > number:
      return place
  raise AssertionError(f'{number} is beyond all of {weights}.')


def _sparse(random, shape):
  """Returns weights, float32, half of them 0; rows sum to 1."""
  weights = random.exponential(size=shape) * (random.random(shape) < 0.5)
  weights[..., 1] += 0.1
  return (weights / weights.sum(-1, keepdims=True)).astype(np.float32)


@pytest.mark.parametrize(
  ('shape', 'jit_compile'), [([2], False), ([20, 3, 40], True)]
)
def test_equals_a_search(shape, jit_compile):
  random = np.random.default_rng(0)
  weights = _sparse(random, shape)
  numbers = random.random(shape[:-1]).astype(np.float32) * np.float32(0.999)
  places = _compiled(jit_compile)(weights, numbers)
  assert places.shape == shape[:-1]
  for index in np.ndindex(*shape[:-1]):
    assert places[index] == _search(weights[index], numbers[index])


def test_never_is_a_weight_of_0_where_sums_differ_beside_it():
  weights = tf.constant([[0.0, 0.25, 0.0, 0.75, 0.0]] * 4)
  # Rounded as XLA may: up next to the second weight and down after the last.
  sums = tf.constant([[0.1, 0.25, 0.3, 0.95, 0.9]] * 4)
  numbers = tf.constant([0.05, 0.27, 0.92, 0.97])
  places = inverse_cdf.find(sums, weights, numbers)
  np.testing.assert_array_equal(places, [1, 3, 3, 3])
