"""Tests of `trunks.py` and of its hidden layers."""

import numpy as np
import pytest
import tensorflow as tf

from repertory.components import networks
from repertory.components.config import choices
from repertory.components.runtime import data_parallel


def normal(*shape, seed=0):
  random = np.random.default_rng(seed)
  return tf.constant(random.normal(size=shape), tf.float32)


def make(network, inputs):
  """Gives all variables new values; returns them by name, and the inputs."""
  network(inputs)
  for i, variable in enumerate(network.variables):
    variable.assign(normal(*variable.shape, seed=i))
  values = {v.name.partition('/')[2]: v.numpy() for v in network.variables}
  return values, inputs.numpy()


def linear(values, name, x):
  return x @ values[f'{name}/w:0'] + values[f'{name}/b:0']


def norm(values, name, x):
  x = x - x.mean(axis=-1, keepdims=True)
  x = x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + 1e-5)
  return x * values[f'{name}/scale:0'] + values[f'{name}/offset:0']


class TestMakeBody:
  def test_knows_what_settings_choose_among(self):
    assert tuple(networks.BODIES) == choices.BODIES

  def test_mlp_has_a_relu_after_each_layer(self):
    body = networks.make_trunk('mlp', (8, 5))
    values, x = make(body, normal(6, 3))
    for i in range(2):
      x = np.maximum(linear(values, f'linear_{i}', x), 0)
    np.testing.assert_allclose(body(normal(6, 3)), x, rtol=1e-4, atol=1e-5)


class TestLayerNormMLP:
  def test_equals_numpy(self):
    network = networks.LayerNormMLP((8, 5))
    values, x = make(network, normal(6, 3))
    x = np.tanh(norm(values, 'layer_norm', linear(values, 'first', x)))
    x = linear(values, 'mlp/linear_0', x)
    expected = np.where(x > 0, x, np.expm1(np.minimum(x, 0)))
    np.testing.assert_allclose(
      network(normal(6, 3)), expected, rtol=1e-4, atol=1e-5
    )


class TestSimBa:
  def test_equals_numpy(self):
    network = networks.SimBa((5, 5))
    values, x = make(network, normal(6, 3))
    x = linear(values, 'linear', x)
    for i in range(2):
      hidden = norm(values, f'block_{i}/layer_norm', x)
      hidden = np.maximum(linear(values, f'block_{i}/inner', hidden), 0)
      assert hidden.shape == (6, 20)
      x = x + linear(values, f'block_{i}/outer', hidden)
    np.testing.assert_allclose(
      network(normal(6, 3)), norm(values, 'layer_norm', x), rtol=1e-3, atol=1e-4
    )

  @pytest.mark.parametrize('sizes', [(), (3, 4)])
  def test_refuses_sizes(self, sizes):
    with pytest.raises(ValueError, match='one or more equal sizes, got'):
      networks.SimBa(sizes)


class TestBatchRenormMLP:
  """`numpy_sac.py` has a twin of the layers."""

  def make(self):
    """Returns a normalization alone, and its variables by name."""
    network = networks.BatchRenormMLP(())
    network(tf.zeros([1, 1]))
    return network, {v.name.split('/')[-1][:-2]: v for v in network.variables}

  def test_statistics_of_the_batch_are_merged(self):
    network, variables = self.make()
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
  def test_renormalizes_after_the_warm_up(self, mean, variance, expected):
    network, variables = self.make()
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

  def test_refuses_to_be_divided_over_devices(self):
    network, _ = self.make()
    with (
      pytest.raises(
        ValueError, match='batch_renorm_mlp must see whole batches'
      ),
      data_parallel.over_devices(['CPU:0', 'CPU:0']),
      networks.batch_statistics(),
    ):
      network(tf.zeros([2, 1]))
