"""Tests of the bounded Gaussian, and of the network for it."""

import math

import numpy as np
import tensorflow as tf

from repertory.components import distributions, networks, specs

_UNLIMITED = [[0.3, -1.0], [9.0, 0.0]]
_LOG_SCALE = [[0.5, -1.0], [-2.0, 0.0]]
_PARAMETERS = tf.constant(np.concatenate([_UNLIMITED, _LOG_SCALE], -1), 'float')


def test_density_is_that_of_gaussians_about_tanh():
  action = np.array([[1.0, -1.0], [0.2, 0.5]])
  found = distributions.BoundedGaussian(2).log_prob(
    _PARAMETERS, tf.constant(action, tf.float32)
  )
  expected = []
  for row in range(2):
    density = 1.0
    for d in range(2):
      mean = math.tanh(_UNLIMITED[row][d])
      scale = math.exp(_LOG_SCALE[row][d])
      z = (action[row, d] - mean) / scale
      density *= math.exp(-0.5 * z**2) / (scale * math.sqrt(2 * math.pi))
    expected.append(math.log(density))
  np.testing.assert_allclose(found, expected, rtol=1e-4)


def test_samples_are_cut_to_the_bounds():
  distribution = distributions.BoundedGaussian(2)
  assert distribution.num_parameters == 4
  noise = tf.constant([[[0.1, 1.0], [-2.0, 9.0]], [[0.0, 0.0], [3.0, -9.0]]])
  found = distribution.sample(_PARAMETERS, noise)
  mean = np.tanh(_UNLIMITED)
  np.testing.assert_allclose(
    found[0],
    [
      [mean[0, 0] + 0.1 * math.exp(0.5), mean[0, 1] + math.exp(-1)],
      [mean[1, 0] - 2 * math.exp(-2), 1],
    ],
    rtol=1e-5,
  )
  np.testing.assert_allclose(found[1], [mean[0], [1, -1]], rtol=1e-6)


def test_deviations_are_limited():
  parameters = tf.constant([[0.0, -100.0], [0.0, 100.0]])
  distribution = distributions.BoundedGaussian(1)
  found = distribution.log_prob(parameters, tf.zeros([2, 1]))
  # The density of the mean is 1 / (σ √2π).
  expected = [5 - 0.5 * math.log(2 * math.pi), -2 - 0.5 * math.log(2 * math.pi)]
  np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_network_has_the_same_deviation_in_all_states():
  number = specs.Array((), np.float32)
  spec = specs.EnvironmentSpec(
    observations=specs.Array((3,), np.float32),
    actions=specs.BoundedArray((2,), np.float32, -2, 5),
    rewards=number,
    discounts=number,
  )
  network = networks.make_bounded_gaussian_network(spec, (4,))
  (log_scale,) = [v for v in network.variables if 'log_scale' in v.name]
  np.testing.assert_array_equal(log_scale, [0, 0])
  log_scale.assign([0.5, -0.5])
  random = np.random.default_rng(0)
  x = tf.constant(random.normal(size=(6, 3)), tf.float32)
  with tf.GradientTape() as tape:
    found = network(x)
    total = tf.reduce_sum(found * [1.0, 2, 3, 4])
  np.testing.assert_array_equal(found[:, 2:], [[0.5, -0.5]] * 6)
  assert np.ptp(found[:, :2].numpy(), axis=0).min() > 0.01
  np.testing.assert_allclose(tape.gradient(total, log_scale), [18, 24])
