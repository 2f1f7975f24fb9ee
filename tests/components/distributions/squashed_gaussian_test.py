"""Tests of `components/distributions/squashed_gaussian.py`."""

import math

import numpy as np
import pytest
import tensorflow as tf

from repertory.components.distributions import squashed_gaussian


def normal_below(x):
  """Φ(x), the cumulative normal distribution."""
  return np.vectorize(lambda x: 0.5 * math.erfc(-x / math.sqrt(2)))(x)


def constant(values):
  return tf.constant(values, tf.float32)


def sample(mean, log_scale, noise):
  """Each argument `[B, D]`."""
  distribution = squashed_gaussian.SquashedGaussian(np.shape(mean)[-1])
  parameters = constant(np.concatenate([mean, log_scale], axis=-1))
  assert parameters.shape[-1] == distribution.num_parameters
  return distribution.sample(parameters, constant(noise))


@pytest.mark.parametrize(
  ('mean', 'log_scale'),
  [(0.0, 0.0), (0.5, -1.0), (-1.0, 0.5), (2.0, -2.0), (0.3, 0.9)],
)
def test_density_is_that_of_the_change_of_variables(mean, log_scale):
  # The probability of actions below a is Φ((atanh(a) − μ) / σ); its slope is
  # the density.
  noise = np.linspace(-1.5, 1.5, 7)[:, None]
  ones = np.ones_like(noise)
  action, log_prob = sample(mean * ones, log_scale * ones, noise)
  a = action.numpy()[:, 0].astype(np.float64)
  scale, h = math.exp(log_scale), 1e-5 * (1 - a**2)

  def below(a):
    return normal_below((np.arctanh(a) - mean) / scale)

  slope = (below(a + h) - below(a - h)) / (2 * h)
  np.testing.assert_allclose(log_prob, np.log(slope), atol=2e-3)


def test_adds_up_over_the_numbers_of_an_action():
  random = np.random.default_rng(0)
  mean, log_scale, noise = random.normal(size=(3, 6, 4))
  action, log_prob = sample(mean, log_scale, noise)
  assert action.shape == [6, 4]
  assert log_prob.shape == [6]
  expected = 0
  for d in range(4):
    one = slice(d, d + 1)
    part, part_log_prob = sample(mean[:, one], log_scale[:, one], noise[:, one])
    expected += part_log_prob.numpy()
    np.testing.assert_allclose(action[:, one], part, rtol=1e-6)
  np.testing.assert_allclose(log_prob, expected, rtol=1e-5, atol=1e-5)


def test_density_integrates_to_one():
  # ∫ π(a) da over actions, as a sum over evenly spaced u with da = a'(u) du.
  u = np.linspace(-12, 12, 20_001)[:, None]
  mean, log_scale = 0.7 * np.ones_like(u), -0.3 * np.ones_like(u)
  _, log_prob = sample(mean, log_scale, (u - mean) / np.exp(log_scale))
  slope = 1 / np.cosh(u[:, 0]) ** 2
  total = np.sum(np.exp(log_prob) * slope) * (u[1, 0] - u[0, 0])
  np.testing.assert_allclose(total, 1, atol=1e-4)


@pytest.mark.parametrize('u', [5.0, 10.0, 30.0, 1000.0])
def test_is_exact_where_tanh_is_flat(u):
  # log(1 − tanh²(u)) → log 4 − 2 |u|, for all but small u.
  means = np.array([[u], [-u]])
  with tf.GradientTape() as tape:
    parameters = constant(np.concatenate([means, 0 * means], axis=-1))
    tape.watch(parameters)
    action, log_prob = squashed_gaussian.SquashedGaussian(1).sample(
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


def test_gradient_flows_through_the_sample():
  # a = tanh(μ + e^s ε): da/dμ = 1 − a², da/ds = (1 − a²) e^s ε.
  parameters = constant([[0.4, -0.5]])
  with tf.GradientTape() as tape:
    tape.watch(parameters)
    action, _ = squashed_gaussian.SquashedGaussian(1).sample(
      parameters, constant([[1.5]])
    )
  a = math.tanh(0.4 + math.exp(-0.5) * 1.5)
  np.testing.assert_allclose(action, [[a]], rtol=1e-6)
  np.testing.assert_allclose(
    tape.gradient(action, parameters),
    [[1 - a**2, (1 - a**2) * math.exp(-0.5) * 1.5]],
    rtol=1e-5,
  )


@pytest.mark.parametrize(
  ('log_scale', 'limit'), [(-1000.0, -20.0), (1000.0, 2.0)]
)
def test_deviations_stay_within_limits(log_scale, limit):
  found = sample([[0.1]], [[log_scale]], [[0.3]])
  expected = sample([[0.1]], [[limit]], [[0.3]])
  np.testing.assert_array_equal(found[0], expected[0])
  np.testing.assert_array_equal(found[1], expected[1])
  assert np.all(np.isfinite(found[1]))


def test_zero_noise_gives_the_median():
  action, _ = sample([[0.4, -2.0]], [[1.0, 1.0]], [[0.0, 0.0]])
  np.testing.assert_allclose(action, np.tanh([[0.4, -2.0]]), rtol=1e-6)
