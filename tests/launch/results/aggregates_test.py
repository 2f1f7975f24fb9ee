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

  def test_area_is_a_mean_height_by_trapezoids(self):
    # Over [0, 1] it is (0 + 2) / 2, over [1, 4] it is (2 + 4) / 2.
    x, y = [0, 1, 4], [0.0, 2, 4]
    expected = (1 * 1 + 3 * 3) / 4
    both = aggregates.area_under_curve(x, [y, [1.0, 1, 1]])
    np.testing.assert_allclose(both, [expected, 1])

  def test_probability_of_improvement_counts_pairs(self):
    # 1 beats none of 1, 2; 2 beats 1; 3 beats both; and two are equal.
    chance = aggregates.probability_of_improvement([1, 2, 3], [1, 2])
    assert chance == (0.5 + 0 + 1 + 0.5 + 1 + 1) / 6


def _enumerate(tasks, statistic, confidence):
  """Returns the interval over all possible resamples, equally likely.

  In plain Python, with the quantiles of the whole distribution.
  """
  values = []
  for chosen in itertools.product(
    *(itertools.product(task, repeat=len(task)) for task in tasks)
  ):
    values.append(statistic(list(itertools.chain(*chosen))))
  values.sort()
  tail = (1 - confidence) / 2
  last = len(values) - 1
  return values[round(tail * last)], values[round((1 - tail) * last)]


class TestBootstrap:
  def test_is_that_of_all_resamples_within_tasks(self):
    tasks = [[0.0, 1.0, 2.0], [100.0, 103.0]]
    found = aggregates.bootstrap_interval(
      list(map(np.array, tasks)),
      aggregates.mean,
      confidence=0.8,
      num_resamples=20_000,
    )
    # Some value of the distribution, or right beside it.
    expected = _enumerate(tasks, statistics.fmean, 0.8)
    np.testing.assert_allclose(found, expected, atol=0.03 * 103)

  def test_single_task_may_be_given_alone(self):
    expected = aggregates.bootstrap_interval([np.array([0.0, 1.0, 5.0])])
    for one in (np.array([0.0, 1.0, 5.0]), (0, 1, 5)):
      assert aggregates.bootstrap_interval(one) == expected

  def test_columns_are_resampled_alike_and_by_themselves(self):
    scores = np.random.default_rng(1).normal(size=[4, 3, 2])
    low, high = aggregates.bootstrap_interval(scores)
    assert low.shape == high.shape == (3, 2)
    alone = aggregates.bootstrap_interval(scores[:, 1, 1])
    np.testing.assert_allclose((low[1, 1], high[1, 1]), alone)

  def test_one_run_has_no_interval(self):
    for scores in (np.array([3.0]), [np.array([1.0]), np.array([2.0])]):
      assert np.all(np.isnan(aggregates.bootstrap_interval(scores)))


@pytest.mark.parametrize(
  ('call', 'message'),
  [
    (lambda: aggregates.mean(np.empty([0, 3])), 'R at least 1'),
    (lambda: aggregates.area_under_curve([2, 1], [0, 0]), 'x must increase'),
    (
      lambda: aggregates.bootstrap_interval(np.ones(2), confidence=1.0),
      'confidence must be between 0 and 1',
    ),
    (lambda: aggregates.bootstrap_interval([]), 'at least one task'),
    (
      lambda: aggregates.bootstrap_interval([np.ones([2, 3]), np.ones([2, 4])]),
      'equal trailing shapes',
    ),
  ],
)
def test_bad_input_is_reported(call, message):
  with pytest.raises(ValueError, match=message):
    call()
