"""Tests of inverse CDF sampling; sum trees are compared with a search."""

import numpy as np
import tensorflow as tf

from repertory.components.distributions import inverse_cdf


def test_never_is_a_weight_of_0_where_sums_differ_beside_it():
  weights = tf.constant([[0.0, 0.25, 0.0, 0.75, 0.0]] * 4)
  # Rounded as XLA may: up next to the second weight and down after the last.
  sums = tf.constant([[0.1, 0.25, 0.3, 0.95, 0.9]] * 4)
  numbers = tf.constant([0.05, 0.27, 0.92, 0.97])
  places = inverse_cdf.find(sums, weights, numbers)
  np.testing.assert_array_equal(places, [1, 3, 3, 3])
