"""Tests of scalars."""

import json
import math

import numpy as np
import pytest
import tensorflow as tf

from repertory.components.loggers import scalars


@pytest.mark.parametrize(
  ('value', 'expected'),
  [
    (None, None),
    (True, True),
    (b'text', 'text'),
    (np.float64(0.5), 0.5),
    (np.int64(2**40), 2**40),
    (np.array([1.5, 2.0]), [1.5, 2.0]),
    (tf.constant(0.5, tf.bfloat16), 0.5),
    (tf.Variable(2.0), 2.0),
    (tf.constant('text'), 'text'),
    ({1: np.int32(2)}, {'1': 2}),
    ((np.float32(1), [np.int8(2)]), [1.0, [2]]),
    (1j, '1j'),
  ],
)
def test_to_plain(value, expected):
  plain = scalars.to_plain(value)
  assert plain == expected
  # Not merely equal: np.float64 is a float, and 1 == True.
  assert type(plain) is type(expected)
  json.dumps(plain)


def test_nonfinite_values_stay():
  assert math.isnan(scalars.to_plain(np.float32('nan')))
  assert scalars.to_plain(tf.constant(-np.inf)) == -math.inf
