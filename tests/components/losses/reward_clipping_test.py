"""Tests of `components/losses/reward_clipping.py`."""

import numpy as np
import pytest
import tensorflow as tf

from repertory.components import losses


@pytest.mark.parametrize(
  ('max_abs', 'expected'),
  [(None, [-3.0, 0.5, 2.0]), (1.0, [-1.0, 0.5, 1.0]), (2.5, [-2.5, 0.5, 2.0])],
)
def test_limits_both_ends(max_abs, expected):
  clipped = losses.clip_rewards(tf.constant([-3.0, 0.5, 2.0]), max_abs)
  np.testing.assert_array_equal(clipped, expected)
