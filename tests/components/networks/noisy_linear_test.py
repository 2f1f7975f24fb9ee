"""Tests of `components/networks/noisy_linear.py`."""

import numpy as np
import pytest
import tensorflow as tf

from repertory.components import networks

P, Q = 3, 2


def make(sigma=0.5):
  layer = networks.NoisyLinear(P, Q, sigma)
  random = np.random.default_rng(0)
  for variable in layer.variables:
    variable.assign(random.normal(size=variable.shape))
  return layer


def slow_layer(layer, x, noise):
  """https://arxiv.org/abs/1706.10295, equations 9 to 11, of one row."""
  arrays = {v.name.split('/')[-1]: v.numpy() for v in layer.variables}
  f = [np.sign(number) * np.sqrt(abs(number)) for number in noise]
  y = np.zeros(Q)
  for j in range(Q):
    for i in range(P):
      weight = (
        arrays['mu_w:0'][i, j] + arrays['sigma_w:0'][i, j] * f[i] * f[P + j]
      )
      y[j] += weight * x[i]
    y[j] += arrays['mu_b:0'][j] + arrays['sigma_b:0'][j] * f[P + j]
  return y


def test_each_row_has_weights_of_its_own():
  layer, random = make(), np.random.default_rng(1)
  x, noise = random.normal(size=(4, P)), random.normal(size=(4, P + Q))
  assert layer.noise_size == P + Q
  found = layer(tf.constant(x, tf.float32), tf.constant(noise, tf.float32))
  expected = [slow_layer(layer, *row) for row in zip(x, noise)]
  np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_without_noise_it_is_as_with_zeros():
  layer = make()
  x = tf.constant(np.random.default_rng(1).normal(size=(4, P)), tf.float32)
  np.testing.assert_allclose(layer(x), layer(x, tf.zeros([4, P + Q])))


@pytest.mark.parametrize('sigma', [0.1, 0.5])
def test_begins_as_published(sigma):
  tf.random.set_seed(0)
  layer = networks.NoisyLinear(100, 50, sigma)
  arrays = {v.name.split('/')[-1]: v.numpy() for v in layer.variables}
  assert sorted(arrays) == ['mu_b:0', 'mu_w:0', 'sigma_b:0', 'sigma_w:0']
  for name in ('mu_w:0', 'mu_b:0'):
    # Uniform within ± 1 / √100.
    assert np.abs(arrays[name]).max() <= 0.1
    assert arrays[name].max() > 0.08
    assert arrays[name].min() < -0.08
  for name in ('sigma_w:0', 'sigma_b:0'):
    np.testing.assert_allclose(arrays[name], sigma / 10, rtol=1e-6)


@pytest.mark.parametrize('has_noise', [True, False])
def test_sigma_learns_from_noise_alone(has_noise):
  layer = make()
  noise = tf.ones([1, P + Q]) if has_noise else None
  with tf.GradientTape() as tape:
    y = tf.reduce_sum(layer(tf.ones([1, P]), noise))
  variables = layer.trainable_variables
  for variable, gradient in zip(variables, tape.gradient(y, variables)):
    assert (gradient is not None) == (has_noise or 'mu' in variable.name)
