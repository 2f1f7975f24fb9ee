"""Tests of rate limits: arithmetic, and absence of deadlocks."""

import math

import numpy as np
import pytest

from repertory.components import replay
from repertory.components.replay import rate_limiters, reverb_tables

INF = float('inf')


@pytest.mark.parametrize(
  ('settings', 'message'),
  [
    ((0.0, 1, 2.0), 'samples_per_insert must be positive .* got 0.0'),
    ((-1.0, 1, 2.0), 'samples_per_insert must be positive .* got -1.0'),
    ((math.nan, 1, 2.0), 'samples_per_insert must be .* got nan'),
    ((INF, 1, INF), 'samples_per_insert must be .* finite, got inf'),
    ((1.0, 0, 2.0), 'min_size must be at least 1, got 0'),
    # A buffer below one sample or one insert blocks both sides.
    ((0.25, 1, 0.9), r'error_buffer must be at least .* = 1, .* got 0.9'),
    ((8.0, 1, 7.0), r'error_buffer must be at least .* = 8, .* got 7.0'),
    ((1.0, 1, math.nan), r'error_buffer must be at least .* = 1, .* got nan'),
  ],
)
def test_impossible_limits_are_refused(settings, message):
  with pytest.raises(ValueError, match=message):
    replay.RateLimit(*settings)


@pytest.mark.parametrize('settings', [(0.25, 1, 1.0), (8.0, 1, 8.0)])
def test_smallest_error_buffer_is_accepted(settings):
  """Also by Reverb."""
  reverb_tables.make_limiter(replay.RateLimit(*settings))


@pytest.mark.parametrize(
  ('limit', 'inserts', 'expected'),
  [
    ((8.0, 1, 8.0), 0, 0),
    ((8.0, 5, 8.0), 4, 0),
    ((8.0, 5, 8.0), 5, 0),
    ((8.0, 5, 8.0), 7, (7 - 5) * 8),
    ((0.25, 10, 1.0), 13, (13 - 10) * 0.25),
    # Even where the limiter does not enforce it.
    ((2.0, 3, INF), 10, (10 - 3) * 2),
  ],
)
def test_sample_target(limit, inserts, expected):
  assert replay.RateLimit(*limit).sample_target(inserts) == expected


def _check(limit, **settings):
  defaults = {
    'table': 'replay',
    'max_size': 100,
    'batch_size': 4,
    'items_per_insert': 2,
  }
  rate_limiters.check(limit, **(defaults | settings))


@pytest.mark.parametrize(
  ('limit', 'settings', 'names', 'numbers'),
  [
    ((1.0, 1, INF), {'max_size': 0}, ['max_size'], [1, 0]),
    ((1.0, 101, INF), {}, ['min_size', 'max_size'], [101, 100]),
    # Items that are removed give one sample each, and all must be there.
    (
      (1.5, 1, INF),
      {'max_times_sampled': 1},
      ['max_times_sampled', 'samples_per_insert'],
      [1.5, 1],
    ),
    (
      (1.0, 3, INF),
      {'max_times_sampled': 1, 'max_size': 8},
      ['max_size', 'min_size', 'batch_size', 'items per step'],
      ['3 + 6', 8],
    ),
    # Agent-specific names.
    (
      (1.0, 101, INF),
      {'names': {'min_size': 'least', 'max_size': 'most'}},
      ["least of table 'replay'", 'at most most = 100'],
      [101],
    ),
    (
      (1.0, 3, INF),
      {
        'max_times_sampled': 1,
        'max_size': 8,
        'names': {'min_size': 'least', 'max_size': 'most'},
      },
      ["most of table 'replay'", 'at least least + '],
      ['3 + 6', 8],
    ),
    # 4 + 8 × 2 = 20.
    (
      (8.0, 1, 19.0),
      {},
      ['error_buffer', 'batch_size', 'samples_per_insert', 'items'],
      [4, 8, 2, 20, 19],
    ),
    ((0.5, 1, 4.9), {}, ['error_buffer'], [4, 0.5, 2, 5, 4.9]),
  ],
)
def test_deadlocks_are_refused(limit, settings, names, numbers):
  with pytest.raises(ValueError) as error:
    _check(replay.RateLimit(*limit), **settings)
  for expected in ['replay', *names, *map(str, numbers)]:
    assert expected in str(error.value)


@pytest.mark.parametrize(
  ('limit', 'settings'),
  [
    ((1.0, 100, INF), {}),
    # A batch may contain an item twice.
    ((1.0, 1, INF), {'batch_size': 101}),
    ((1.0, 1, INF), {'max_times_sampled': 1}),
    ((1.0, 2, INF), {'max_times_sampled': 1, 'max_size': 8}),
    ((8.0, 1, 20.0), {}),
    ((0.5, 1, 5.0), {}),
  ],
)
def test_tight_limits_are_accepted(limit, settings):
  _check(replay.RateLimit(*limit), **settings)


class _Limiter:
  """A slow twin of Reverb's limiter, from the inequality in the docstring."""

  def __init__(self, limit):
    self._limit = limit
    self.inserts = self.samples = 0

  def insert(self):
    """Returns whether an insert went through."""
    limit = self._limit
    center = limit.samples_per_insert * limit.min_size
    ahead = (self.inserts + 1) * limit.samples_per_insert - self.samples
    free = self.inserts < limit.min_size
    if not free and ahead > center + limit.error_buffer:
      return False
    self.inserts += 1
    return True

  def sample(self):
    """Returns whether a sample went through."""
    limit = self._limit
    center = limit.samples_per_insert * limit.min_size
    ahead = self.inserts * limit.samples_per_insert - self.samples - 1
    if self.inserts < limit.min_size or ahead < center - limit.error_buffer:
      return False
    self.samples += 1
    return True


def _alternate(limit, batch_size, items_per_insert, num_turns=100):
  """Acts and learns in one thread, as the topology `single` does.

  Returns whether neither ever had to wait.
  """
  limiter = _Limiter(limit)
  for _ in range(num_turns):
    if not all(limiter.insert() for _ in range(items_per_insert)):
      return False
    while limiter.samples + batch_size <= limit.sample_target(limiter.inserts):
      if not all(limiter.sample() for _ in range(batch_size)):
        return False
  return True


def _random_settings(random):
  samples_per_insert = float(random.choice([0.1, 0.25, 1, 1.5, 4, 16]))
  batch_size = int(random.integers(1, 40))
  items_per_insert = int(random.integers(1, 10))
  min_size = int(random.integers(1, 30))
  return samples_per_insert, batch_size, items_per_insert, min_size


def test_checked_limits_never_block_alternation():
  random = np.random.default_rng(0)
  for _ in range(200):
    spi, batch_size, items, min_size = _random_settings(random)
    limit = replay.RateLimit(
      spi, min_size, max(1, spi, batch_size + spi * items)
    )
    _check(limit, batch_size=batch_size, items_per_insert=items)
    assert _alternate(limit, batch_size, items), (limit, batch_size, items)


def test_some_refused_limits_do_block():
  """The check is necessary."""
  limit = replay.RateLimit(1.0, 1, 4.0)
  with pytest.raises(ValueError, match='error_buffer'):
    _check(limit, batch_size=8, items_per_insert=4)
  assert not _alternate(limit, batch_size=8, items_per_insert=4)


def test_learner_and_actor_on_their_own_never_both_wait():
  """Every valid limit allows one of the two sides to continue."""
  random = np.random.default_rng(1)
  for _ in range(50):
    spi, _, _, min_size = _random_settings(random)
    limiter = _Limiter(replay.RateLimit(spi, min_size, max(1, spi)))
    for _ in range(300):
      first, second = limiter.insert, limiter.sample
      if random.random() < 0.5:
        first, second = second, first
      assert first() or second(), limiter.__dict__
