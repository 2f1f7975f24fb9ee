"""Tests of `batch_renorm_mlp.py`; `numpy_sac.py` has a twin of the layers."""

import numpy as np
import pytest
import tensorflow as tf

from repertory.components import networks
from repertory.components.runtime import data_parallel


def make():
  """Returns a normalization alone, and its variables by name."""
  network = networks.BatchRenormMLP(())
  network(tf.zeros([1, 1]))
  return network, {v.name.split('/')[-1][:-2]: v for v in network.variables}


def test_statistics_of_the_batch_are_taken_in():
  network, variables = make()
  inputs = tf.constant([[1.0], [3.0]])
  with networks.batch_statistics():
    outputs = network(inputs)
  # Mean 2, variance 1; the mean is less than ε from the deviation of 1.
  np.testing.assert_allclose(outputs, [[-1], [1]], rtol=1e-3)
  np.testing.assert_allclose(variables['mean'], [0.02], rtol=1e-5)
  np.testing.assert_allclose(variables['variance'], [1.0], rtol=1e-5)
  # Elsewhere they are used, and stay.
  np.testing.assert_allclose(network(inputs), inputs - 0.02, rtol=1e-3)
  np.testing.assert_allclose(variables['mean'], [0.02], rtol=1e-5)


@pytest.mark.parametrize(
  ('mean', 'variance', 'expected'),
  [
    # Mean 2 and variance 1 of the batch, renormalized to those of the past:
    # (x − 1) / 2.
    (1.0, 4.0, [0.0, 1.0]),
    # The shift of 2 / 0.1 is limited to 5, and the ratio of 10 to 3.
    (0.0, 0.01, [2.0, 8.0]),
    # The ratio of 1 / 10 is limited to 1 / 3; the shift is 0.
    (2.0, 100.0, [-1 / 3, 1 / 3]),
  ],
)
def test_the_past_counts_after_the_warm_up(mean, variance, expected):
  network, variables = make()
  variables['mean'].assign([mean])
  variables['variance'].assign([variance])
  inputs = tf.constant([[1.0], [3.0]])
  for calls, values in ((99_999, [-1, 1]), (100_000, expected)):
    variables['mean'].assign([mean])
    variables['variance'].assign([variance])
    variables['num_calls'].assign(calls)
    with networks.batch_statistics():
      outputs = network(inputs)
    np.testing.assert_allclose(outputs[:, 0], values, rtol=2e-3, atol=1e-3)


def test_refuses_to_be_divided_over_devices():
  network, _ = make()
  with (
    pytest.raises(ValueError, match='batch_renorm_mlp must see whole batches'),
    data_parallel.over_devices(['CPU:0', 'CPU:0']),
    networks.batch_statistics(),
  ):
    network(tf.zeros([2, 1]))
