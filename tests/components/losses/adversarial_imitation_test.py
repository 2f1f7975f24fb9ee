"""Tests of `components/losses/adversarial_imitation.py`."""

import math

import numpy as np
import pytest
import tensorflow as tf

from repertory.components import losses


def _sigma(logit):
  return 1 / (1 + math.exp(-logit))


def slow_loss(logits, is_demonstration, mask):
  """−E_data[log D] − E_own[log(1 − D)], a step at a time."""
  offline, of_own = [], []
  for logit, demonstrated, counts in zip(logits, is_demonstration, mask):
    if counts and demonstrated:
      offline.append(-math.log(_sigma(logit)))
    elif counts:
      of_own.append(-math.log(1 - _sigma(logit)))
  return sum(
    sum(values) / len(values) for values in (offline, of_own) if values
  )


class TestDiscriminatorLoss:
  def test_by_hand(self):
    # D is 3/4 of one demonstration, and 1/2 and 1/4 of two of one's own.
    logits = tf.constant([math.log(3), 0.0, -math.log(3)])
    loss = losses.discriminator_loss(
      logits, tf.constant([True, False, False]), tf.fill([3], True)
    )
    expected = -math.log(3 / 4) - (math.log(1 / 2) + math.log(3 / 4)) / 2
    np.testing.assert_allclose(loss, expected, rtol=1e-6)

  @pytest.mark.parametrize('seed', range(3))
  def test_equals_the_equation(self, seed):
    random = np.random.default_rng(seed)
    logits = random.normal(scale=3, size=20)
    is_demonstration = random.uniform(size=20) < 0.3
    mask = random.uniform(size=20) < 0.8
    found = losses.discriminator_loss(
      tf.constant(logits), tf.constant(is_demonstration), tf.constant(mask)
    )
    np.testing.assert_allclose(
      found, slow_loss(logits, is_demonstration, mask), rtol=1e-9
    )

  def test_stays_finite_where_it_is_sure(self):
    loss = losses.discriminator_loss(
      tf.constant([-1e3, 1e3]), tf.constant([True, False]), tf.fill([2], True)
    )
    np.testing.assert_allclose(loss, 2e3)

  def test_wrong_ranks_are_named(self):
    marks = tf.fill([2], True)
    with pytest.raises(ValueError, match=r'^logits must have rank 1'):
      losses.discriminator_loss(tf.zeros([2, 1]), marks, marks)


class TestGradientPenalty:
  def test_by_hand(self):
    # Norms are 5, 0 and 1; the last does not count.
    gradients = tf.constant([[3.0, 4.0], [0.0, 0.0], [0.0, 9.0]])
    penalty = losses.gradient_penalty(
      gradients, tf.constant([True, True, False])
    )
    np.testing.assert_allclose(penalty, ((5 - 1) ** 2 + 1) / 2, rtol=1e-5)

  def test_has_a_gradient_at_zero(self):
    gradients = tf.zeros([1, 2])
    with tf.GradientTape() as tape:
      tape.watch(gradients)
      penalty = losses.gradient_penalty(gradients, tf.constant([True]))
    assert np.isfinite(tape.gradient(penalty, gradients)).all()


class TestImitationRewards:
  def test_by_hand(self):
    logits = tf.constant([math.log(3), 0.0])  # D is 3/4 and 1/2.
    np.testing.assert_allclose(
      losses.imitation_rewards(logits, 'gail'),
      [-math.log(1 / 4), -math.log(1 / 2)],
      rtol=1e-6,
    )
    np.testing.assert_allclose(
      losses.imitation_rewards(logits, 'airl'),
      [math.log(3 / 4) - math.log(1 / 4), 0],
      rtol=1e-6,
    )

  def test_no_gradient_flows(self):
    logits = tf.Variable([1.0])
    with tf.GradientTape() as tape:
      rewards = losses.imitation_rewards(logits, 'gail')
    assert tape.gradient(rewards, logits) is None

  def test_unknown_kind_is_named(self):
    with pytest.raises(ValueError, match=r"^kind must be 'gail' or 'airl'"):
      losses.imitation_rewards(tf.zeros([1]), 'other')
