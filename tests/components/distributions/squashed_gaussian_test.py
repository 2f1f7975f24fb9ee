"""Tests of `components/distributions/gaussian.py`."""

import math

import numpy as np
import pytest
import tensorflow as tf

from repertory.components import distributions


def normal_below(x):
  """Φ(x), the cumulative normal distribution."""
  return np.vectorize(lambda x: 0.5 * math.erfc(-x / math.sqrt(2)))(x)


def constant(values):
  return tf.constant(values, tf.float32)


def sample(mean, log_scale, noise):
  """Each argument `[B, D]`."""
  distribution = distributions.SquashedGaussian(np.shape(mean)[-1])
  parameters = constant(np.concatenate([mean, log_scale], axis=-1))
  assert parameters.shape[-1] == distribution.num_parameters
  return distribution.sample(parameters, constant(noise))


@pytest.mark.parametrize(
  ('mean', 'log_scale'),
  [(0.5, -1.0), (-1.0, 0.5)],
)
def test_density_is_that_of_the_change_of_variables(mean, log_scale):
  # The probability of actions below a is Φ((atanh(a) − μ) / σ); its slope is
  # the density.
  noise = np.linspace(-1.5, 1.5, 7)[:, None]
  ones = np.ones_like(noise)
  action, log_prob = sample(mean * ones, log_scale * ones, noise)
  # Numbers of an action add up.
  _, twice = sample(
    *(np.tile(x, 2) for x in (mean * ones, log_scale * ones, noise))
  )
  np.testing.assert_allclose(twice, 2 * log_prob, rtol=1e-5, atol=1e-5)
  a = action.numpy()[:, 0].astype(np.float64)
  scale, h = math.exp(log_scale), 1e-5 * (1 - a**2)

  def below(a):
    return normal_below((np.arctanh(a) - mean) / scale)

  slope = (below(a + h) - below(a - h)) / (2 * h)
  np.testing.assert_allclose(log_prob, np.log(slope), atol=2e-3)


@pytest.mark.parametrize('u', [5.0, 1000.0])
def test_is_exact_where_tanh_is_flat(u):
  # log(1 − tanh²(u)) → log 4 − 2 |u|, for all but small u.
  means = np.array([[u], [-u]])
  with tf.GradientTape() as tape:
    parameters = constant(np.concatenate([means, 0 * means], axis=-1))
    tape.watch(parameters)
    action, log_prob = distributions.SquashedGaussian(1).sample(
      parameters, tf.zeros([2, 1])
    )
  correction = -2 * math.log1p(math.exp(-2 * u))
  expected = -0.5 * math.log(2 * math.pi) - (math.log(4) - 2 * u) - correction
  np.testing.assert_allclose(log_prob, [expected] * 2, rtol=1e-5)
  gradient = tape.gradient(log_prob, parameters)
  # d/du of −log(1 − tanh²(u)) is 2 tanh(u); of −log σ, −1.
  slope = 2 * math.tanh(u)
  np.testing.assert_allclose(gradient, [[slope, -1], [-slope, -1]], rtol=1e-4)
  assert np.max(np.abs(action)) <= 1


@pytest.mark.parametrize(
  ('log_scale', 'limit'), [(-1000.0, -20.0), (1000.0, 2.0)]
)
def test_deviations_stay_within_limits(log_scale, limit):
  found = sample([[0.1]], [[log_scale]], [[0.3]])
  expected = sample([[0.1]], [[limit]], [[0.3]])
  np.testing.assert_array_equal(found[0], expected[0])
  np.testing.assert_array_equal(found[1], expected[1])
  assert np.all(np.isfinite(found[1]))
