"""Tests of table descriptions, by the tables made from them."""

import dataclasses

import pytest
import tensorflow as tf

from repertory.components import replay
from support.replay import replay_fixture

LIMIT = replay.RateLimit(4.0, min_size=10, error_buffer=16.0)


@pytest.mark.parametrize('exponent', [-0.1, float('nan')])
def test_impossible_exponents_are_refused(exponent):
  message = f'priority_exponent must be at least 0, got {exponent}'
  with pytest.raises(ValueError, match=message):
    replay.prioritized(replay_fixture.SIGNATURE, 50, LIMIT, exponent)


def test_queues_have_no_exponent():
  queue = replay.queue(replay_fixture.SIGNATURE, 50)
  with pytest.raises(ValueError, match="of queue 'replay' must be None, got 1"):
    dataclasses.replace(queue, priority_exponent=1)


@pytest.mark.parametrize(
  ('size', 'max_size', 'num_floats', 'expected'),
  [
    (6, 9, 1, 6),
    # Divisors of 6 up to the capacity of the queue.
    (6, 5, 1, 3),
    # 20,000 floats are 80 kB, of which 3 are less than 256 KiB.
    (6, 9, 20_000, 3),
    (6, 9, 200_000, 1),
  ],
)
def test_bundles_divide_the_size_and_are_small(
  size, max_size, num_floats, expected
):
  signature = {'x': tf.TensorSpec([num_floats], tf.float32)}
  queue = replay.queue(signature, max_size)
  assert queue.bundled(size).bundle_size == expected
  assert queue.bundled(size).max_size == max_size


def test_only_queues_hold_bundles():
  table = replay.uniform(replay_fixture.SIGNATURE, 3, replay_fixture.NO_LIMIT)
  with pytest.raises(ValueError, match='must be a queue to hold bundles'):
    table.bundled(3)


def test_check_of_what_reverb_can_count():
  server_lib = pytest.importorskip('repertory.components.replay.reverb.server')
  largest = 2**31 - 1
  fitting = replay.uniform(replay_fixture.SIGNATURE, largest, LIMIT)
  fitting.check(4, 3)
  assert server_lib.make_table(fitting).info.max_size == largest
  beyond = dataclasses.replace(fitting, max_size=largest + 1)
  message = "room of table 'replay' must be at most 2147483647, got 2147483648"
  with pytest.raises(ValueError, match=message):
    beyond.check(4, 3, names={'max_size': 'room'})
