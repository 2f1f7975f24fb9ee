"""Tests of `trunks.py` and of its hidden layers."""

import numpy as np
import pytest
import tensorflow as tf

from repertory.components import networks
from repertory.components.config import choices


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

  @pytest.mark.parametrize('kind', networks.BODIES)
  def test_shapes(self, kind):
    assert networks.make_trunk(kind, (8, 8))(normal(6, 3)).shape == [6, 8]

  def test_mlp_has_a_relu_after_each_layer(self):
    body = networks.make_trunk('mlp', (8, 5))
    values, x = make(body, normal(6, 3))
    for i in range(2):
      x = np.maximum(linear(values, f'linear_{i}', x), 0)
    np.testing.assert_allclose(body(normal(6, 3)), x, rtol=1e-4, atol=1e-5)

  def test_refuses_unknown_kinds(self):
    with pytest.raises(ValueError, match=r"kind must be one of .*, got 'mpl'"):
      networks.make_trunk('mpl', (3,))


class TestLayerNormMLP:
  @pytest.mark.parametrize('sizes', [(8,), (8, 5), (8, 5, 6)])
  def test_shapes(self, sizes):
    found = networks.LayerNormMLP(sizes)(normal(6, 3))
    assert found.shape == [6, sizes[-1]]

  def test_size_of_the_inputs_is_of_no_matter(self):
    network = networks.LayerNormMLP((8, 5))
    inputs = normal(6, 3)
    np.testing.assert_allclose(
      network(inputs), network(1000 * inputs), atol=1e-3
    )
    assert np.abs(network(inputs) - network(-inputs)).max() > 0.1

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
    with pytest.raises(ValueError, match='one for each block, got'):
      networks.SimBa(sizes)
