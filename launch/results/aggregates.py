"""Statistics over several runs: means and bootstrap intervals.

After Agarwal et al., "Deep Reinforcement Learning at the Edge of the
Statistical Precipice" (2021), https://arxiv.org/abs/2108.13264: point estimates
from few runs need an interval, the interquartile mean is less sensitive to
outliers than the mean and uses more data than the median, and runs are
resampled within their task.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

CONFIDENCE = 0.95
NUM_RESAMPLES = 2000

Statistic = Callable[[np.ndarray], np.ndarray]


class Interval(NamedTuple):
  """Confidence interval, both bounds `[...]`; NaN with fewer than two runs."""

  low: np.ndarray
  high: np.ndarray


def mean(scores: npt.ArrayLike) -> np.ndarray:
  """Returns the mean of `[R, ...]` over its first axis, `[...]`."""
  return np.mean(_check(scores), axis=0)


def interquartile_mean(scores: npt.ArrayLike) -> np.ndarray:
  """Returns the mean of the middle half of `[R, ...]` over its first axis.

  The ⌊R / 4⌋ least and the ⌊R / 4⌋ greatest values are left out, so none of
  three or fewer.

  Returns:
    `[...]`.
  """
  scores = np.sort(_check(scores), axis=0)
  cut = len(scores) // 4
  return np.mean(scores[cut : len(scores) - cut], axis=0)


def area_under_curve(x: npt.ArrayLike, y: npt.ArrayLike) -> np.ndarray:
  """Returns the normalized area under curves, by the trapezoidal rule.

  It measures learning speed as well as final performance.

  Args:
    x: `[X]`, increasing, at least two.
    y: `[..., X]`.

  Returns:
    `[...]`: ∫ y dx / (x[−1] − x[0]), in the unit of y.
  """
  x, y = np.asarray(x, float), np.asarray(y, float)
  if x.ndim != 1 or len(x) < 2 or np.any(np.diff(x) <= 0):
    raise ValueError(f'x must increase over at least two points, got {x}.')
  if y.shape[-1:] != x.shape:
    raise ValueError(f'y must be [..., {len(x)}], like x, got {y.shape}.')
  heights = (y[..., 1:] + y[..., :-1]) / 2
  return np.sum(heights * np.diff(x), axis=-1) / (x[-1] - x[0])


def bootstrap_interval(
  scores: np.ndarray | Sequence[Any],
  statistic: Statistic = interquartile_mean,
  *,
  confidence: float = CONFIDENCE,
  num_resamples: int = NUM_RESAMPLES,
  seed: int = 0,
) -> Interval:
  """Returns the percentile bootstrap interval of a statistic over runs.

  R runs are drawn with replacement, separately within each task. The same seed
  gives the same interval.

  Args:
    scores: `[R, ...]` of the R runs of one task; or one such array for each
      task, with equal trailing shapes. The statistic pools all scores, so a
      task with more runs counts more.
    statistic: Function from `[R, ...]` to `[...]`.
    confidence: Share of resamples within the interval, between 0 and 1.
    num_resamples: Number of resamples.
    seed: Seed of the resampling.

  Returns:
    The interval; NaN if no task has two runs.
  """
  if not 0 < confidence < 1:
    raise ValueError(f'confidence must be between 0 and 1, got {confidence}.')
  if num_resamples < 1:
    raise ValueError(f'num_resamples must be at least 1, got {num_resamples}.')
  tasks: list[Any] = list(scores)
  if not tasks:
    raise ValueError('scores must have at least one task, got none.')
  if isinstance(scores, np.ndarray) or np.ndim(tasks[0]) == 0:
    tasks = [scores]
  tasks = [_check(task) for task in tasks]
  if len({task.shape[1:] for task in tasks}) > 1:
    shapes = [task.shape for task in tasks]
    raise ValueError(f'scores must have equal trailing shapes, got {shapes}.')
  if all(len(task) < 2 for task in tasks):
    nothing = np.full(tasks[0].shape[1:], np.nan)
    return Interval(nothing, nothing)
  random = np.random.default_rng(seed)
  # [R of the task, resamples, ...] of each task.
  drawn = [
    task[random.integers(len(task), size=(num_resamples, len(task))).T]
    for task in tasks
  ]
  tail = (1 - confidence) / 2
  low, high = np.quantile(
    statistic(np.concatenate(drawn)), [tail, 1 - tail], axis=0
  )
  return Interval(low, high)


def probability_of_improvement(x: npt.ArrayLike, y: npt.ArrayLike) -> float:
  """Returns the probability of improvement of X over Y: section 4.

  Args:
    x: `[R]` scores on one task.
    y: `[S]` scores on the same task.

  Returns:
    The share of the R × S pairs in which X has the higher score; ties count
    half. 0.5 if neither is better.
  """
  x, y = _check(x), _check(y)
  return float(np.mean(np.heaviside(x[:, None] - y[None, :], 0.5)))


def _check(given: npt.ArrayLike) -> np.ndarray:
  scores = np.asarray(given, float)
  if scores.ndim < 1 or not len(scores):
    raise ValueError(
      f'scores must be [R, ...] with R at least 1, got {scores.shape}.'
    )
  return scores
