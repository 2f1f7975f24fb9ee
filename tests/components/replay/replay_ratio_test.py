"""Tests of the replay ratio for acting and learning in a single thread."""

import fractions

import pytest
import tensorflow as tf

from repertory.components import replay

_SIGNATURE = {'x': tf.TensorSpec((), tf.float32)}
_BATCH_SIZE = 4


def _make_table(samples_per_insert=2.0, min_size=10, error_buffer=100.0):
  limit = replay.RateLimit(samples_per_insert, min_size, error_buffer)
  return replay.uniform(_SIGNATURE, max_size=1000, rate_limit=limit)


def _make_pace(samples, learner_steps):
  return replay.ReplayRatio(
    _make_table(), _BATCH_SIZE, samples=samples, learner_steps=learner_steps
  )


def test_a_batch_is_due_when_all_its_samples_are():
  # At 7 updates 30 items had been sampled, two more than were learned from.
  replay_ratio = _make_pace(30, 7)
  # The next makes 34 samples: (27 − 10) × 2.
  assert replay_ratio.updates_due(7, 26) == 0
  assert replay_ratio.updates_due(7, 27) == 1
  # The one after it 38.
  assert replay_ratio.updates_due(7, 28) == 1
  assert replay_ratio.updates_due(8, 28) == 0
  assert replay_ratio.updates_due(7, 29) == 2
  assert replay_ratio.updates_due(8, 29) == 1


def test_count_anew_starts_at_the_samples_so_far():
  replay_ratio = _make_pace(0, 7)
  # Two batches came, of 4.
  assert replay_ratio.reset_count(9, 15) == 15 - 2 * 4
  # The next makes 19 samples; (19 − 10) × 2 = 18.
  assert replay_ratio.updates_due(9, 19) == 0
  assert replay_ratio.updates_due(9, 20) == 1
  assert replay_ratio.reset_count(9, 15) == 0


@pytest.mark.parametrize('samples_per_insert', [0.3, 1.7, 16.0])
def test_updates_are_those_of_exact_numbers(samples_per_insert):
  replay_ratio = replay.ReplayRatio(
    _make_table(samples_per_insert, 3), _BATCH_SIZE
  )
  ratio = fractions.Fraction(samples_per_insert)
  for num_items in range(300):
    exact = max(0, num_items - 3) * ratio / _BATCH_SIZE
    due = replay_ratio.updates_due(0, num_items)
    if abs(exact - round(exact)) > 1e-9:  # Otherwise rounding decides.
      assert due == int(exact)
    for done in range(due + 2):
      assert replay_ratio.updates_due(done, num_items) == max(0, due - done)


def test_queue():
  table = replay.queue(_SIGNATURE, 10)
  replay_ratio = replay.ReplayRatio(table, _BATCH_SIZE)
  assert replay_ratio.updates_due(0, 3) == 0
  assert replay_ratio.updates_due(0, 9) == 2
