"""Tests of rate limits: refusals, absence of deadlocks, and the limiter."""

import math

import numpy as np
import pytest

from repertory.components import replay
from repertory.components.replay import rate_limiters
from support.replay import replay_fixture

INF = float('inf')


@pytest.mark.parametrize(
  ('settings', 'message'),
  [
    ((0.0, 1, 2.0), 'samples_per_insert must be positive .* got 0.0'),
    ((math.nan, 1, 2.0), 'samples_per_insert must be .* got nan'),
    ((INF, 1, INF), 'samples_per_insert must be .* finite, got inf'),
    ((1.0, 0, 2.0), 'min_size must be at least 1, got 0'),
    # A buffer below one sample or one insert blocks both sides.
    ((0.25, 1, 0.9), r'error_buffer must be at least .* = 1, .* got 0.9'),
    ((8.0, 1, 7.0), r'error_buffer must be at least .* = 8, .* got 7.0'),
  ],
)
def test_impossible_limits_are_refused(settings, message):
  with pytest.raises(ValueError, match=message):
    replay.RateLimit(*settings)


def _check(limit, batch_size=4, items_per_insert=2, names=None, max_size=100):
  table = replay.uniform(replay_fixture.SIGNATURE, max_size, limit)
  table.check(batch_size, items_per_insert, names)


@pytest.mark.parametrize(
  ('limit', 'settings', 'names', 'numbers'),
  [
    ((1.0, 1, INF), {'max_size': 0}, ['max_size'], [1, 0]),
    ((1.0, 101, INF), {}, ['min_size', 'max_size'], [101, 100]),
    # 4 + 8 × 2 = 20.
    (
      (8.0, 1, 19.0),
      {},
      ['error_buffer', 'batch_size', 'samples_per_insert', 'items'],
      [4, 8, 2, 20, 19],
    ),
  ],
)
def test_deadlocks_are_refused(limit, settings, names, numbers):
  with pytest.raises(ValueError) as error:
    _check(replay.RateLimit(*limit), **settings)
  for expected in ['replay', *names, *map(str, numbers)]:
    assert expected in str(error.value)


def _alternate(limit, batch_size, items_per_insert, num_turns=100):
  """Acts and learns in one thread; returns whether neither had to wait."""
  limiter = rate_limiters.Limiter(limit, 10**6)
  for _ in range(num_turns):
    if limiter.num_insertable(items_per_insert) < items_per_insert:
      return False
    limiter.inserts += items_per_insert
    while limiter.samples + batch_size <= limit.sample_target(limiter.inserts):
      if not limiter.may_sample(batch_size, limiter.inserts):
        return False
      limiter.samples += batch_size
  return True


def test_checked_limits_never_block_alternation():
  random = np.random.default_rng(0)
  for _ in range(200):
    spi = float(random.choice([0.1, 0.25, 1, 1.5, 4, 16]))
    batch_size, items, min_size = random.integers(1, [40, 10, 30]).tolist()
    limit = replay.RateLimit(
      spi, min_size, max(1, spi, batch_size + spi * items)
    )
    _check(limit, batch_size=batch_size, items_per_insert=items)
    assert _alternate(limit, batch_size, items), (limit, batch_size, items)
  # The check is necessary.
  limit = replay.RateLimit(1.0, 1, 4.0)
  with pytest.raises(ValueError, match='error_buffer'):
    _check(limit, batch_size=8, items_per_insert=4)
  assert not _alternate(limit, batch_size=8, items_per_insert=4)


@pytest.mark.parametrize('seed', range(5))
def test_limiter_keeps_the_inequality(seed):
  random = np.random.default_rng(seed)
  ratio = float(random.choice([0.1, 0.3, 1, 1.7, 16]))
  min_size = int(random.integers(1, 20))
  buffer = max(1.0, ratio) * float(random.integers(1, 10))
  limit = replay.RateLimit(ratio, min_size, buffer)
  limiter, center = rate_limiters.Limiter(limit, 1000), ratio * min_size
  for _ in range(500):
    asked = int(random.integers(1, 30))
    num_allowed = 0
    while num_allowed < asked:
      inserts = limiter.inserts + num_allowed + 1
      error = inserts * ratio - limiter.samples
      if inserts > min_size and error > center + buffer:
        break
      num_allowed += 1
    assert limiter.num_insertable(asked) == num_allowed
    error = limiter.inserts * ratio - (limiter.samples + asked)
    may_sample = limiter.inserts >= min_size and error >= center - buffer
    assert limiter.may_sample(asked, limiter.inserts) == may_sample
    if random.random() < 0.5:
      limiter.inserts += num_allowed
    elif may_sample:
      limiter.samples += asked
