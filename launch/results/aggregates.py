"""Statistics over several runs: means and bootstrap intervals.

After Agarwal et al., "Deep Reinforcement Learning at the Edge of the
Statistical Precipice" (2021), https://arxiv.org/abs/2108.13264: point estimates
from few runs need an interval, and the interquartile mean is less sensitive to
outliers than the mean and uses more data than the median.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

CONFIDENCE = 0.95
_NUM_RESAMPLES = 2000

Statistic = Callable[[np.ndarray], np.ndarray]


def mean(scores: npt.ArrayLike) -> np.ndarray:
  """Returns the mean of `[R, ...]` over its first axis, `[...]`."""
  return np.mean(np.asarray(scores, float), axis=0)


def interquartile_mean(scores: npt.ArrayLike) -> np.ndarray:
  """Returns the mean of the middle half of `[R, ...]` over its first axis.

  The ⌊R / 4⌋ least and the ⌊R / 4⌋ greatest values are left out, so none of
  three or fewer.

  Returns:
    `[...]`.
  """
  scores = np.sort(scores, axis=0)
  cut = len(scores) // 4
  return np.mean(scores[cut : len(scores) - cut], axis=0)


def bootstrap_interval(
  scores: npt.ArrayLike, statistic: Statistic = interquartile_mean
) -> tuple[np.ndarray, np.ndarray]:
  """Returns the 95 % percentile bootstrap interval of a statistic over runs.

  The R runs are drawn with replacement, 2,000 times. The same scores give the
  same interval.

  Args:
    scores: `[R, ...]` of the R runs of one task.
    statistic: Function from `[R, ...]` to `[...]`.

  Returns:
    Both bounds, `[...]`; NaN with fewer than two runs.
  """
  scores = np.asarray(scores, float)
  num_runs = len(scores)
  if num_runs < 2:
    nothing = np.full(scores.shape[1:], np.nan)
    return nothing, nothing
  random = np.random.default_rng(0)
  drawn = random.integers(num_runs, size=(_NUM_RESAMPLES, num_runs)).T
  tail = (1 - CONFIDENCE) / 2
  low, high = np.quantile(statistic(scores[drawn]), [tail, 1 - tail], axis=0)
  return low, high
