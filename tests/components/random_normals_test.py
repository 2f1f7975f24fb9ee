"""Tests of `random_streams.next_normals`."""

import math

import numpy as np
import pytest
import tensorflow as tf

from repertory.components.runtime import random_streams

NUM_ROWS = 20_000


def counters_of(num_rows, seed=0):
  """A stream for each row; their starts need not be far apart here."""
  random = np.random.default_rng(seed)
  return tf.constant(random.integers(2**63, size=num_rows, dtype=np.uint64))


@pytest.mark.parametrize('size', [1, 2, 3, 6, 7])
def test_moments(size):
  numbers, _ = random_streams.next_normals(counters_of(NUM_ROWS), size)
  assert numbers.shape == [NUM_ROWS, size]
  assert numbers.dtype == tf.float32
  x = numbers.numpy().astype(np.float64)
  # Of a Gaussian: E[x], E[x²], E[x³], E[x⁴] and the deviations of the powers.
  for power, mean, deviation in (
    (1, 0, 1),
    (2, 1, math.sqrt(2)),
    (3, 0, math.sqrt(15)),
    (4, 3, math.sqrt(96)),
  ):
    np.testing.assert_allclose(
      np.mean(x**power, axis=0),
      np.full(size, mean),
      atol=4.5 * deviation / math.sqrt(NUM_ROWS),
    )
  # Of all pairs of columns, and of their squares: they share a radius.
  for y in (x, x**2):
    if size > 1:
      others = np.corrcoef(y.T) - np.eye(size)
      assert np.abs(others).max() < 5 / math.sqrt(NUM_ROWS)


def test_draws_of_one_stream_are_independent():
  counters, draws = counters_of(NUM_ROWS), []
  for _ in range(3):
    numbers, counters = random_streams.next_normals(counters, 3)
    draws.append(numbers.numpy())
  columns = np.concatenate(draws, axis=-1)
  others = np.corrcoef(columns.T) - np.eye(9)
  assert np.abs(others).max() < 5 / math.sqrt(NUM_ROWS)


@pytest.mark.parametrize('size', [1, 3, 4])
def test_counters_advance_past_used_ones(size):
  counters = counters_of(5)
  numbers, after = random_streams.next_normals(counters, size)
  for _ in range((size + 1) // 2):
    first, second, counters = random_streams.next_uniforms(counters)
    radius = np.sqrt(-2 * np.log1p(-first.numpy().astype(np.float64)))
    # A pair of uniforms gives the cosine's number.
    cosine = radius * np.cos(2 * np.pi * second.numpy().astype(np.float64))
    distance = np.abs(numbers.numpy() - cosine[:, None]).min(axis=-1)
    np.testing.assert_allclose(distance, np.zeros(5), atol=1e-4)
  np.testing.assert_array_equal(after, counters)


def test_row_is_the_same_in_any_batch():
  counters = counters_of(6)
  together, _ = random_streams.next_normals(counters, 3)
  for i in range(6):
    alone, _ = random_streams.next_normals(counters[i : i + 1], 3)
    np.testing.assert_allclose(alone[0], together[i], rtol=1e-5)
