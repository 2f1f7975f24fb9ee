"""Tests of means over runs and their intervals."""

import itertools
import statistics

import numpy as np
import pytest

from repertory.launch.results import aggregates


class TestStatistics:
  @pytest.mark.parametrize(
    ('scores', 'expected'),
    [
      # With three, ⌊3 / 4⌋ = 0 are left out.
      ([0.0, 1.0, 11.0], 12 / 3),
      # ⌊7 / 4⌋ = 1 at each end.
      ([5.0, 6.0, -50.0, 1.0, 2.0, 99.0, 4.0], (1 + 2 + 4 + 5 + 6) / 5),
      # ⌊8 / 4⌋ = 2 at each end.
      ([8.0, 7.0, 6.0, 5.0, 1.0, 2.0, 3.0, 4.0], (3 + 4 + 5 + 6) / 4),
    ],
  )
  def test_interquartile_mean(self, scores, expected):
    assert aggregates.interquartile_mean(np.array(scores)) == expected

  def test_are_taken_over_the_first_axis_alone(self):
    scores = np.array([[1.0, 10], [2, 20], [3, 30], [100, -100]])
    np.testing.assert_allclose(aggregates.mean(scores), [106 / 4, -10])
    np.testing.assert_allclose(
      aggregates.interquartile_mean(scores), [2.5, (10 + 20) / 2]
    )


class TestBootstrap:
  def test_is_that_of_all_resamples(self):
    scores = [0.0, 1.0, 2.0, 100.0]
    # All possible resamples are equally likely.
    values = sorted(
      map(statistics.fmean, itertools.product(scores, repeat=len(scores)))
    )
    last = len(values) - 1
    expected = values[round(0.025 * last)], values[round(0.975 * last)]
    found = aggregates.bootstrap_interval(scores, aggregates.mean)
    # Some value of the distribution, or right beside it.
    np.testing.assert_allclose(found, expected, atol=0.5)

  def test_columns_are_resampled_alike_and_by_themselves(self):
    scores = np.random.default_rng(1).normal(size=[4, 3, 2])
    low, high = aggregates.bootstrap_interval(scores)
    assert low.shape == high.shape == (3, 2)
    alone = aggregates.bootstrap_interval(scores[:, 1, 1])
    np.testing.assert_allclose((low[1, 1], high[1, 1]), alone)

  def test_one_run_has_no_interval(self):
    assert np.all(np.isnan(aggregates.bootstrap_interval([3.0])))
