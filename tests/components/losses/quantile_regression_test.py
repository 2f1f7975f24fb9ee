"""Tests of `components/losses/quantile_regression.py`."""

import numpy as np
import pytest
import tensorflow as tf

from repertory.components import losses
from support.agents import numeric_gradients


def constant(values):
  return tf.constant(values, tf.float32)


def slow_loss(quantiles, taus, targets, threshold):
  """https://arxiv.org/abs/1806.06923, equation 3, of one row."""
  total = 0.0
  for theta, tau in zip(quantiles, taus):
    for y in targets:
      u = y - theta
      if abs(u) <= threshold:
        huber = 0.5 * u**2
      else:
        huber = threshold * (abs(u) - 0.5 * threshold)
      weight = abs(tau - (1.0 if u < 0 else 0.0))
      total += weight * huber / threshold / len(targets)
  return total


@pytest.mark.parametrize(
  ('num_quantiles', 'expected'), [(1, [0.5]), (4, [1 / 8, 3 / 8, 5 / 8, 7 / 8])]
)
def test_midpoints(num_quantiles, expected):
  np.testing.assert_allclose(
    losses.quantile_midpoints(num_quantiles), expected, rtol=1e-6
  )


class TestQuantileHuber:
  def test_by_hand(self):
    # Errors of θ = 0: 3 is beyond κ = 2, −1 is not. Of θ = 1: 2 and −2.
    found = losses.quantile_huber(
      constant([[0, 1]]), constant([[0.25, 0.75]]), constant([[3, -1]]), 2.0
    )
    first = (0.25 * 2 * (3 - 1) + 0.75 * 0.5) / 2 / 2
    second = (0.75 * 0.5 * 4 + 0.25 * 0.5 * 4) / 2 / 2
    np.testing.assert_allclose(found, [first + second], rtol=1e-6)

  @pytest.mark.parametrize('threshold', [0.3, 1.0, 5.0])
  @pytest.mark.parametrize(('n', 'm'), [(1, 4), (5, 1), (4, 6)])
  def test_equals_the_loop_and_its_gradient(self, threshold, n, m):
    random = np.random.default_rng(0)
    thetas, targets = random.normal(size=(3, n)), random.normal(size=(3, m))
    taus = random.uniform(size=(3, n))
    quantiles = constant(thetas)
    with tf.GradientTape() as tape:
      tape.watch(quantiles)
      found = losses.quantile_huber(
        quantiles, constant(taus), constant(targets), threshold
      )
    expected = [
      slow_loss(*row, threshold) for row in zip(thetas, taus, targets)
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-4)
    slopes = numeric_gradients.gradients(
      lambda arrays: sum(
        slow_loss(*row, threshold)
        for row in zip(arrays['theta'], taus, targets)
      ),
      {'theta': thetas},
    )
    np.testing.assert_allclose(
      tape.gradient(found, quantiles), slopes['theta'], atol=1e-4
    )

  @pytest.mark.parametrize('threshold', [1.0, 1e4, 1e6, 1e8])
  def test_a_large_threshold_keeps_small_errors(self, threshold):
    taus, targets = [0.2, 0.7], [0.0266, -1e-3]
    quantiles = constant([[0, 0]])
    with tf.GradientTape() as tape:
      tape.watch(quantiles)
      found = losses.quantile_huber(
        quantiles, constant([taus]), constant([targets]), threshold
      )
    expected = slow_loss([0.0, 0.0], taus, targets, threshold)
    np.testing.assert_allclose(found, [expected], rtol=1e-5)
    # The slope by θ of |τ − 1{u < 0}| ½ u² / κ is −|τ − 1{u < 0}| u / κ.
    slopes = [
      -(tau * 0.0266 - (1 - tau) * 1e-3) / 2 / threshold for tau in taus
    ]
    np.testing.assert_allclose(
      tape.gradient(found, quantiles), [slopes], rtol=1e-5
    )

  def test_taus_may_be_the_same_of_all_rows(self):
    random = np.random.default_rng(0)
    quantiles, targets = constant(random.normal(size=(2, 3, 4)))
    taus = losses.quantile_midpoints(4)[None]
    np.testing.assert_allclose(
      losses.quantile_huber(quantiles, taus, targets, 1.0),
      losses.quantile_huber(quantiles, tf.tile(taus, [3, 1]), targets, 1.0),
    )

  @pytest.mark.parametrize(('tau', 'least'), [(0.1, 1), (0.5, 5), (0.9, 9)])
  def test_is_least_at_the_quantile(self, tau, least):
    # Of 1, 2, …, 9 a share of 0.1 is at most 1 or so, and 0.9 at most 9.
    targets = constant([np.arange(1, 10)])
    costs = [
      float(
        losses.quantile_huber(
          constant([[theta]]), constant([[tau]]), targets, 0.01
        )[0]
      )
      for theta in range(11)
    ]
    assert np.argmin(costs) == least

  def test_no_gradient_flows_into_targets(self):
    targets = constant([[1, 2]])
    with tf.GradientTape() as tape:
      tape.watch(targets)
      found = losses.quantile_huber(
        constant([[0]]), constant([[0.5]]), targets, 1.0
      )
    assert tape.gradient(found, targets) is None

  def test_refuses_shapes(self):
    two, one = constant([[1, 2]]), constant([1, 2])
    for arguments, name in (
      ((one, two, two), 'quantiles'),
      ((two, one, two), 'taus'),
      ((two, two, one), 'targets'),
    ):
      with pytest.raises(ValueError, match=f'{name} must have rank 2'):
        losses.quantile_huber(*arguments, 1.0)
