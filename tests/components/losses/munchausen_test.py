"""Tests of `components/losses/munchausen.py`."""

import math

import numpy as np
import pytest
import tensorflow as tf

from repertory.components import losses


def constant(values):
  return tf.constant(values, tf.float32)


def slow_scaled_log_policy(q, temperature):
  """τ log of softmax(q / τ), for numbers that do not overflow."""
  powers = [math.exp(value / temperature) for value in q]
  return [temperature * math.log(power / sum(powers)) for power in powers]


class TestScaledLogPolicy:
  @pytest.mark.parametrize('temperature', [0.03, 0.5, 3.0])
  def test_equals_the_loop(self, temperature):
    q = np.random.default_rng(0).normal(size=(5, 3))
    found = losses.scaled_log_policy(constant(q), temperature)
    expected = [slow_scaled_log_policy(row, temperature) for row in q]
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)

  def test_keeps_small_differences_of_large_values(self):
    # 2^20 and a difference of 2^-3, which float32 holds; divided by τ first,
    # it would be a third of the rounding error.
    large = 2.0**20
    found = losses.scaled_log_policy(constant([[large, large + 0.125]]), 0.03)
    expected = [slow_scaled_log_policy([0.0, 0.125], 0.03)]
    np.testing.assert_allclose(found, expected, rtol=1e-4)


class TestMunchausenBonus:
  def test_by_hand(self):
    # π = (1/4, 3/4) at τ = 2.
    q = constant([[0, 2 * math.log(3)]] * 2)
    found = losses.munchausen_bonus(
      q, tf.constant([0, 1], tf.uint8), alpha=0.5, temperature=2.0, clip=-1.5
    )
    # 2 log ¼ = −2.77 is below the limit.
    expected = [0.5 * -1.5, 0.5 * 2 * math.log(3 / 4)]
    np.testing.assert_allclose(found, expected, rtol=1e-6)

  def test_no_gradient(self):
    q = constant([[1, 2]])
    with tf.GradientTape() as tape:
      tape.watch(q)
      found = losses.munchausen_bonus(q, tf.constant([0]), 0.9, 0.03, -1.0)
    assert tape.gradient(found, q) is None

  def test_refuses_shapes(self):
    with pytest.raises(ValueError, match='q_tm1 must have rank 2'):
      losses.munchausen_bonus(constant([1]), tf.constant([0]), 0.9, 0.03, -1.0)
