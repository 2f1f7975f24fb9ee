"""Tests of `components/losses/random_network_distillation.py`."""

import numpy as np
import pytest
import tensorflow as tf

from repertory.components import losses


def test_by_hand():
  predicted = tf.constant([[1.0, 2.0], [0.0, 0.0]])
  target = tf.constant([[0.0, 4.0], [0.0, 0.0]])
  errors = losses.prediction_errors(predicted, target)
  np.testing.assert_allclose(errors, [(1**2 + 2**2) / 2, 0])


def test_gradient_is_that_of_the_prediction_alone():
  predicted, target = tf.Variable([[1.0, 2.0]]), tf.Variable([[0.0, 4.0]])
  with tf.GradientTape() as tape:
    errors = losses.prediction_errors(predicted, target)
  by_predicted, by_target = tape.gradient(errors, [predicted, target])
  # 2 (f̂ − f) / E.
  np.testing.assert_allclose(by_predicted, [[1, -2]])
  assert by_target is None


def test_wrong_ranks_are_named():
  with pytest.raises(ValueError, match=r'^target must have rank 2'):
    losses.prediction_errors(tf.zeros([2, 3]), tf.zeros([2]))
