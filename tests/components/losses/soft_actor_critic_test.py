"""Tests of `components/losses/soft_actor_critic.py`."""

import numpy as np
import pytest
import tensorflow as tf

from repertory.components import losses


def constant(values):
  return tf.constant(values, tf.float32)


class TestSoftQTargets:
  @pytest.mark.parametrize(
    ('r', 'discount', 'q', 'log_prob', 'temperature', 'expected'),
    [
      # 1 + 0.5 · (2 − 0.1 · (−4)).
      pytest.param(1, 0.5, [2], -4, 0.1, [1 + 0.5 * (2 + 0.4)], id='middle'),
      # After the end neither value nor entropy counts.
      pytest.param(1, 0.0, [2], -4, 0.1, [1], id='end'),
      pytest.param(1, 0.5, [-3], -4, 0.0, [1 + 0.5 * -3], id='no_temperature'),
      pytest.param(0, 1.0, [5], 2, 0.5, [5 - 0.5 * 2], id='likely_action'),
      # Quantiles of the value: the entropy is worth as much in each of them.
      pytest.param(0, 0.5, [5, 7, 4], 2, 0.5, [2, 3, 1.5], id='quantiles'),
    ],
  )
  def test_by_hand(self, r, discount, q, log_prob, temperature, expected):
    target = losses.soft_q_targets(
      constant([r]), constant([discount]), constant([q]), constant([log_prob]),
      constant(temperature),
    )  # fmt: skip
    np.testing.assert_allclose(target, [expected], rtol=1e-6)


class TestTruncatedQuantiles:
  def test_by_hand(self):
    # The three largest of all, whosever they are.
    quantiles = constant([[[1, 5], [9, 8], [2, 7]], [[3, 2], [1, 0], [4, 5]]])
    np.testing.assert_array_equal(
      losses.truncated_quantiles(quantiles, 1), [[1, 2, 5], [0, 1, 2]]
    )
    np.testing.assert_array_equal(
      losses.truncated_quantiles(quantiles, 0),
      [[1, 2, 5, 7, 8, 9], [0, 1, 2, 3, 4, 5]],
    )

  @pytest.mark.parametrize('num_dropped', [-1, 2])
  def test_refuses_numbers(self, num_dropped):
    with pytest.raises(ValueError, match=r'must be in \[0, 2\).* got'):
      losses.truncated_quantiles(constant([[[1, 5]]]), num_dropped)


class TestSoftPolicyLoss:
  def test_by_hand(self):
    q, log_prob = constant([1, 5]), constant([-2, 4])
    temperature = constant(0.5)
    with tf.GradientTape(persistent=True) as tape:
      tape.watch([q, log_prob, temperature])
      loss = losses.soft_policy_loss(q, log_prob, temperature)
    expected = ((0.5 * -2 - 1) + (0.5 * 4 - 5)) / 2
    np.testing.assert_allclose(loss, expected)
    np.testing.assert_allclose(tape.gradient(loss, q), [-0.5, -0.5])
    np.testing.assert_allclose(tape.gradient(loss, log_prob), [0.25, 0.25])
    assert tape.gradient(loss, temperature) is None


class TestTemperatureLoss:
  @pytest.mark.parametrize(
    ('log_prob', 'target_entropy', 'expected_slope'),
    [
      # Entropy 3 is above the target of 1, and 3 − 1 = 2.
      ([-2, -4], 1.0, 2.0),
      ([2, 4], 1.0, -4.0),
      ([2, 4], -2.0, -1.0),
    ],
  )
  def test_by_hand(self, log_prob, target_entropy, expected_slope):
    temperature, log_prob = constant(0.5), constant(log_prob)
    with tf.GradientTape(persistent=True) as tape:
      tape.watch([temperature, log_prob])
      loss = losses.temperature_loss(temperature, log_prob, target_entropy)
    np.testing.assert_allclose(loss, 0.5 * expected_slope)
    # Positive where there is entropy to spare: the temperature falls.
    np.testing.assert_allclose(tape.gradient(loss, temperature), expected_slope)
    assert tape.gradient(loss, log_prob) is None
