"""Tests of `components/losses/reward_models.py`."""

import math

import numpy as np
import pytest
import tensorflow as tf

from repertory.components import losses


class TestDiscriminatorLoss:
  def test_by_hand(self):
    # D is 3/4 of one demonstration, and 1/2 and 1/4 of two steps of the policy.
    logits = tf.constant([math.log(3), 0.0, -math.log(3), np.nan])
    loss = losses.discriminator_loss(
      logits,
      tf.constant([True, False, False, False]),
      tf.constant([True, True, True, False]),
    )
    expected = -math.log(3 / 4) - (math.log(1 / 2) + math.log(3 / 4)) / 2
    np.testing.assert_allclose(loss, expected, rtol=1e-6)

  def test_stays_finite_where_it_is_sure(self):
    loss = losses.discriminator_loss(
      tf.constant([-1e3, 1e3]), tf.constant([True, False]), tf.fill([2], True)
    )
    np.testing.assert_allclose(loss, 2e3)


def test_gradient_penalty():
  # Norms are 5, 0 and 9; the last does not count.
  gradients = tf.constant([[3.0, 4.0], [0.0, 0.0], [0.0, 9.0]])
  with tf.GradientTape() as tape:
    tape.watch(gradients)
    penalty = losses.gradient_penalty(
      gradients, tf.constant([True, True, False])
    )
  np.testing.assert_allclose(penalty, ((5 - 1) ** 2 + 1) / 2, rtol=1e-5)
  assert np.isfinite(tape.gradient(penalty, gradients)).all()


class TestImitationRewards:
  @pytest.mark.parametrize(
    ('kind', 'expected'),
    [('gail', [math.log(4), math.log(2)]), ('airl', [math.log(3), 0])],
  )
  def test_by_hand(self, kind, expected):
    logits = tf.constant([math.log(3), 0.0])  # D is 3/4 and 1/2.
    with tf.GradientTape() as tape:
      tape.watch(logits)
      rewards = losses.imitation_rewards(logits, kind)
    np.testing.assert_allclose(rewards, expected, rtol=1e-6)
    assert tape.gradient(rewards, logits) is None


def test_prediction_errors():
  predicted = tf.constant([[1.0, 2.0], [0.0, 0.0]])
  target = tf.constant([[0.0, 4.0], [0.0, 0.0]])
  with tf.GradientTape() as tape:
    tape.watch(predicted)
    errors = losses.prediction_errors(predicted, target)
  np.testing.assert_allclose(errors, [(1**2 + 2**2) / 2, 0])
  # 2 (f̂ − f) / E.
  np.testing.assert_allclose(
    tape.gradient(errors, predicted), [[1, -2], [0, 0]]
  )
