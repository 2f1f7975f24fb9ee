"""Tests of `components/runtime/random_streams.py`."""

import itertools

import numpy as np
import pytest
import tensorflow as tf

from repertory.components.runtime import random_streams

_MASK = 2**64 - 1
_GOLDEN_GAMMA = 0x9E3779B97F4A7C15


def split_mix(counter):
  """Java's `SplittableRandom.nextLong`, figure 17 of the paper."""
  counter = (counter + _GOLDEN_GAMMA) & _MASK
  z = counter
  z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
  z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
  return z ^ (z >> 31), counter


class TestNextUniforms:
  @pytest.mark.parametrize(
    ('seed', 'outputs'),
    [
      # As the reference implementation in C prints them,
      # https://prng.di.unimi.it/splitmix64.c.
      (0, [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]),
      (1234567, [6457827717110365317, 3203168211198807973]),
    ],
  )
  def test_published_outputs(self, seed, outputs):
    counters, twin = tf.constant([seed], tf.uint64), seed
    for output in outputs:
      high, low, counters = random_streams.next_uniforms(counters)
      bits, twin = split_mix(twin)
      assert bits == output
      # The upper and the lower 24 bits, as binary fractions: exact in float32.
      assert high.numpy()[0] == (output >> 40) / 2**24
      assert low.numpy()[0] == (output & (2**24 - 1)) / 2**24
      assert int(counters.numpy()[0]) == twin

  def test_equals_the_twin_for_any_counter(self):
    draw = tf.function(
      random_streams.next_uniforms, jit_compile=True, autograph=False
    )
    starts = [0, 1, _MASK, _MASK - _GOLDEN_GAMMA, 2**63, 2**63 - 1, 2**32]
    random = np.random.default_rng(0)
    starts += random.integers(0, 2**63, size=20).tolist()
    counters, twins = tf.constant(starts, tf.uint64), starts
    for _ in range(3):
      high, low, counters = draw(counters)
      outputs = [split_mix(twin) for twin in twins]
      twins = [twin for _, twin in outputs]
      assert high.numpy().tolist() == [
        (bits >> 40) / 2**24 for bits, _ in outputs
      ]
      assert low.numpy().tolist() == [
        (bits % 2**24) / 2**24 for bits, _ in outputs
      ]
      assert [int(c) for c in counters.numpy()] == twins

  def test_numpy_draws_the_same(self):
    """Beyond those drawn at once, and where counters did not advance."""
    draw = random_streams.NumpyUniforms()
    counters = random_streams.initial_counters(1, range(3)).numpy()
    for step in range(200):
      expected = random_streams.next_uniforms(tf.constant(counters))
      drawn = draw(counters)
      for ours, theirs in zip(drawn, expected, strict=True):
        np.testing.assert_array_equal(ours, theirs.numpy())
        assert ours.dtype == theirs.dtype
      if step % 30:
        counters = drawn[-1]


class TestNextUniformVectors:
  @pytest.mark.parametrize('size', [0, 2, 5])
  def test_is_what_calls_in_turn_draw(self, size):
    start = random_streams.initial_counters(1, range(3))
    found, counters = random_streams.next_uniform_vectors(start, size)
    firsts, seconds, twin = [], [], start
    for _ in range((size + 1) // 2):
      first, second, twin = random_streams.next_uniforms(twin)
      firsts.append(first.numpy())
      seconds.append(second.numpy())
    expected = np.array([*firsts, *seconds][:size]).reshape(size, 3).T
    assert found.dtype == tf.float32
    np.testing.assert_array_equal(found.numpy(), expected)
    np.testing.assert_array_equal(counters.numpy(), twin.numpy())


class TestInitialCounters:
  def test_is_of_the_id_and_not_of_the_place(self):
    together = random_streams.initial_counters(3, range(8)).numpy()
    assert together.dtype == np.uint64
    for i in range(8):
      alone = random_streams.initial_counters(3, [i]).numpy()
      assert alone.tolist() == [together[i]]
    shuffled = random_streams.initial_counters(3, [5, 0, 7]).numpy()
    assert shuffled.tolist() == together[[5, 0, 7]].tolist()

  def test_streams_do_not_overlap(self):
    # All streams walk the same cycle of 2^64 counters in steps of gamma. From
    # one start to another it is difference · gamma^-1 (mod 2^64) steps.
    inverse = pow(_GOLDEN_GAMMA, -1, 2**64)
    starts = [
      int(c)
      for seed in range(2)
      for c in random_streams.initial_counters(seed, range(256)).numpy()
    ]
    num_draws = 10**5
    for one, other in itertools.combinations(starts, 2):
      steps = ((other - one) * inverse) & _MASK
      assert num_draws <= steps <= 2**64 - num_draws


class TestNextNormals:
  num_rows = 20_000

  def test_moments_and_independence(self):
    draws, random = [], np.random.default_rng(0)
    counters = tf.constant(
      random.integers(2**63, size=self.num_rows, dtype=np.uint64)
    )
    for size in (3, 4):
      numbers, counters = random_streams.next_normals(counters, size)
      assert numbers.dtype == tf.float32
      draws.append(numbers.numpy().astype(np.float64))
    x = np.concatenate(draws, axis=-1)
    assert x.shape == (self.num_rows, 7)
    # Of a Gaussian: E[x], E[x²], E[x³], E[x⁴] and the deviations of the powers.
    for power, mean, deviation in (
      (1, 0, 1),
      (2, 1, 2**0.5),
      (3, 0, 15**0.5),
      (4, 3, 96**0.5),
    ):
      np.testing.assert_allclose(
        np.mean(x**power, axis=0),
        np.full(7, mean),
        atol=4.5 * deviation / self.num_rows**0.5,
      )
    # Of all pairs of columns, and of their squares: they share a radius.
    for y in (x, x**2):
      others = np.corrcoef(y.T) - np.eye(7)
      assert np.abs(others).max() < 5 / self.num_rows**0.5

  def test_counters_advance_past_used_ones(self):
    counters = random_streams.initial_counters(0, range(5))
    numbers, after = random_streams.next_normals(counters, 3)
    for _ in range(2):
      first, second, counters = random_streams.next_uniforms(counters)
      radius = np.sqrt(-2 * np.log1p(-first.numpy().astype(np.float64)))
      # A pair of uniforms gives the cosine's number.
      cosine = radius * np.cos(2 * np.pi * second.numpy().astype(np.float64))
      distance = np.abs(numbers.numpy() - cosine[:, None]).min(axis=-1)
      np.testing.assert_allclose(distance, np.zeros(5), atol=1e-4)
    np.testing.assert_array_equal(after, counters)
