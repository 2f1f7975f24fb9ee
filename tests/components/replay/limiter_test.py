"""Tests of the arithmetic of rate limiters, against their inequality."""

import numpy as np
import pytest

from repertory.components import replay
from repertory.components.replay import limiter
from support.replay import replay_fixture


def _make(samples_per_insert, min_size, error_buffer):
  limit = replay.RateLimit(samples_per_insert, min_size, error_buffer)
  return limiter.Limiter(replay.uniform(replay_fixture.SIGNATURE, 1000, limit))


def test_by_hand():
  # Inserts wait above 2 · 3 + 4 = 10, samples below 2 · 3 − 4 = 2.
  made = _make(2.0, 3, 4.0)
  assert made.num_insertable(100) == 5
  made.inserts = 5
  assert made.num_insertable(1) == 0
  # 10 − 8 = 2.
  assert made.may_sample(8, size=5)
  assert not made.may_sample(9, size=5)
  assert not made.may_sample(1, size=2)  # Fewer than 3 items.
  made.samples = 1
  assert made.num_insertable(100) == 0  # 12 − 1 = 11.
  made.samples = 2
  assert made.num_insertable(100) == 1  # 12 − 2 = 10.


def test_the_first_items_are_always_inserted():
  """Below the minimal size nothing can be sampled, so inserts must not wait."""
  made = _make(1.0, 10, 1.0)
  made.samples = -100  # As if they were far ahead.
  assert made.num_insertable(100) == 10


@pytest.mark.parametrize('seed', range(20))
def test_keeps_the_inequality(seed):
  random = np.random.default_rng(seed)
  ratio = float(random.choice([0.1, 0.3, 1, 1.7, 16]))
  min_size = int(random.integers(1, 20))
  buffer = max(1.0, ratio) * float(random.integers(1, 10))
  made, center = _make(ratio, min_size, buffer), ratio * min_size
  for _ in range(500):
    size = made.inserts
    asked = int(random.integers(1, 30))
    num_allowed = 0
    while num_allowed < asked:
      inserts = made.inserts + num_allowed + 1
      error = inserts * ratio - made.samples
      if inserts > min_size and error > center + buffer:
        break
      num_allowed += 1
    assert made.num_insertable(asked) == num_allowed
    error = made.inserts * ratio - (made.samples + asked)
    may_sample = size >= min_size and error >= center - buffer
    assert made.may_sample(asked, size) == may_sample
    # What the other side lacks, one by one.
    missing = 0
    while (
      size + missing < min_size
      or (made.inserts + missing) * ratio - (made.samples + asked)
      < center - buffer
    ):
      missing += 1
    assert made.inserts_missing(asked, size) == missing
    missing = 0
    while (
      made.inserts + asked > min_size
      and (made.inserts + asked) * ratio - (made.samples + missing)
      > center + buffer
    ):
      missing += 1
    assert made.samples_missing(asked) == missing
    if random.random() < 0.5:
      made.inserts += num_allowed
    elif may_sample:
      made.samples += asked


def test_queue():
  made = limiter.Limiter(replay.queue(replay_fixture.SIGNATURE, 5))
  assert made.num_insertable(100) == 5
  assert not made.may_sample(1, size=0)
  made.inserts = 5
  assert made.num_insertable(1) == 0
  assert made.may_sample(5, size=1)
  assert not made.may_sample(6, size=1)
  assert made.samples_missing(3) == 3
  assert made.inserts_missing(1, size=5) == 0
  assert made.inserts_missing(7, size=-1) == 2
  made.samples = 2
  assert made.num_insertable(100) == 2
  assert made.samples_missing(3) == 1


def test_without_a_limit_nothing_waits():
  made = limiter.Limiter(replay_fixture.make_fifo(replay_fixture.SIGNATURE))
  made.samples = 10**9
  made.inserts = 1
  assert made.may_sample(10**6, size=1)
  assert made.num_insertable(10**6) == 10**6
  assert made.inserts_missing(10**6, size=1) == 0
  assert made.inserts_missing(1, size=0) == 1
  assert made.samples_missing(10**6) == 0
