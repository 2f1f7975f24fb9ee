"""Tests of local tables, against slow twins."""

import dataclasses
import itertools

import numpy as np
import pytest
import tensorflow as tf

from repertory.components import replay
from repertory.components.config.settings import SettingError
from repertory.components.replay import local
from support.replay import local_fixture, replay_fixture


class _Twin:
  """A table as lists of all items, oldest first."""

  def __init__(self, max_size, exponent=None, seed=0):
    self.max_size, self.exponent = max_size, exponent
    self.keys, self.values, self.priorities = [], [], []
    self.num_inserts = 0
    self.random = np.random.Generator(np.random.PCG64(seed))

  def insert(self, value, priority):
    self.keys.append(self.num_inserts)
    self.values.append(value)
    self.priorities.append(priority)
    self.num_inserts += 1
    for column in (self.keys, self.values, self.priorities):
      del column[: -self.max_size]

  def update(self, keys, priorities):
    for key, priority in zip(keys, priorities):
      if key in self.keys:
        self.priorities[self.keys.index(key)] = priority

  def sample(self, num_samples):
    """Returns values, keys, probabilities."""
    if self.exponent is None:
      first, size = self.keys[0], len(self.keys)
      keys = self.random.integers(first, first + size, num_samples)
      found = [self.keys.index(key) for key in keys]
      probabilities = [1 / size] * num_samples
    else:
      uniforms = self.random.random(num_samples)
      # In the order of rows, which is that of a ring.
      order = sorted(
        range(len(self.keys)), key=lambda i: self.keys[i] % self.max_size
      )
      weights = [self.priorities[i] ** self.exponent for i in order]
      total = sum(weights)
      found, probabilities = [], []
      for u in uniforms:
        sums = itertools.accumulate(weights)
        n = next(n for n, upto in enumerate(sums) if upto > u * total)
        found.append(order[n])
        probabilities.append(weights[n] / total)
    return (
      [self.values[i] for i in found],
      [self.keys[i] for i in found],
      probabilities,
    )


@pytest.mark.parametrize('exponent', [None, 2.0])
@pytest.mark.parametrize('max_size', [1, 100])
def test_equals_its_twin(max_size, exponent):
  """Samples, probabilities and keys, with inserts, removals and updates."""
  random = np.random.default_rng(max_size)
  limit = replay_fixture.NO_LIMIT
  description = local_fixture.make_uniform(max_size)
  if exponent is not None:
    description = replay_fixture.make_prioritized(exponent, limit, max_size)
  table = local_fixture.make_table(description, seed=3)
  twin = _Twin(max_size, exponent, seed=3)
  upcoming = []
  writer = local_fixture.open_writer(table, priority=lambda: upcoming.pop(0))
  value = itertools.count(1000)
  for _ in range(60):
    # Whole numbers, so that sums are exact.
    priorities = random.integers(1, 6, random.integers(1, 13)).astype(float)
    upcoming.extend(priorities)
    batch = [next(value) for _ in priorities]
    writer.put([np.array(batch)])
    for each, priority in zip(batch, priorities):
      twin.insert(each, priority)
    drawn = local_fixture.sample(table, 9)
    values, keys, probabilities = twin.sample(9)
    assert local_fixture.values(drawn) == values
    assert drawn.keys.tolist() == keys
    np.testing.assert_array_equal(drawn.probabilities, probabilities)
    assert drawn.table_sizes.tolist() == [len(twin.keys)] * 9
    # Some items were removed, and some keys are repeated.
    keys = random.integers(0, twin.num_inserts, 8).astype(np.uint64)
    keys[:2] = keys[2:4]
    priorities = random.integers(1, 6, 8).astype(float)
    table.update_priorities(keys, priorities)
    twin.update(keys.tolist(), priorities.tolist())
  assert table.status().inserts == twin.num_inserts
  assert table.status().samples == 60 * 9


def test_draws_have_their_probabilities():
  for exponent in (0.0, 0.6, 1.0):
    priorities = np.linspace(0.1, 5, 50)
    table = local_fixture.make_table(
      replay_fixture.make_prioritized(exponent), seed=3
    )
    local_fixture.insert(table, range(50), priorities.tolist())
    drawn = local_fixture.values(local_fixture.sample(table, 100_000))
    found = np.bincount(drawn, minlength=50)
    expected = priorities**exponent
    expected *= 100_000 / expected.sum()
    # The largest value of 49 degrees of freedom in 99.9 % of cases.
    assert ((found - expected) ** 2 / expected).sum() < 85.4


def test_items_of_zero_weight_are_sampled_if_all_have_it():
  table = local_fixture.make_table(replay_fixture.make_prioritized(1.0))
  local_fixture.insert(table, [1, 2], priorities=[0.0, 0.0])
  drawn = local_fixture.sample(table, 50)
  assert set(local_fixture.values(drawn)) == {1, 2}
  assert drawn.probabilities.tolist() == [0.5] * 50


def test_a_queue_returns_each_item_once_and_in_order():
  table = local_fixture.make_table(replay.queue(local_fixture.SIGNATURE, 5))
  writer = local_fixture.open_writer(table)
  writer.put([np.arange(12)])  # More than its capacity.
  assert table.status() == replay.TableInfo(5, 5, 5, 0, 'insert')
  drawn = local_fixture.sample(table, 3)
  assert local_fixture.values(drawn) == [0, 1, 2]
  assert drawn.keys.tolist() == [0, 1, 2]
  assert drawn.table_sizes.tolist() == [5, 4, 3]
  assert drawn.probabilities.tolist() == [1.0] * 3
  # Three of the pending items were inserted.
  assert table.status() == replay.TableInfo(5, 5, 8, 3, 'insert')
  assert local_fixture.values(local_fixture.sample(table, 5)) == [3, 4, 5, 6, 7]
  assert table.sample(5, 0) is None  # There are four.
  assert table.status() == replay.TableInfo(4, 5, 12, 8, 'sample')
  assert local_fixture.values(local_fixture.sample(table, 4)) == [8, 9, 10, 11]
  writer.close()


def test_allocates_only_used_memory():
  """Of the address space, it reserves all."""
  signature = {'x': tf.TensorSpec([200], tf.uint8)}
  small = replay.uniform(signature, 50_000_000, replay_fixture.NO_LIMIT)
  table = local.Table(small, 0)
  writer = local_fixture.open_writer(table)
  writer.put([np.ones([3, 200], np.uint8)])
  writer.close()
  assert (local_fixture.sample(table, 2).data['x'] == 1).all()
  with pytest.raises(SettingError, match=r'max_size .* too large'):
    local.Table(dataclasses.replace(small, max_size=2**55), 0)


def test_many_threads_lose_and_double_nothing():
  table = local_fixture.make_table(replay.queue(local_fixture.SIGNATURE, 40))
  num_writers, num_puts = 4, 150

  def write(number):
    writer = local_fixture.open_writer(table, max_pending_items=3)
    for k in range(num_puts):
      writer.put([1000 * number + 2 * k + np.arange(2)])
      if writer.is_ahead():
        writer.wait()
    writer.close()

  calls = [replay_fixture.Call(write, n) for n in range(num_writers)]
  drawn, missing = [], num_writers * num_puts * 2
  while missing:
    sample = table.sample(min(missing, 7), replay_fixture.DEADLINE_SECONDS)
    assert sample is not None
    drawn += local_fixture.values(sample)
    missing -= len(sample.keys)
  for call in calls:
    call.result()
  for number in range(num_writers):
    own = [value for value in drawn if value // 1000 == number]
    assert own == list(range(1000 * number, 1000 * number + 2 * num_puts))
