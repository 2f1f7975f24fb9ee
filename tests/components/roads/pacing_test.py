"""Tests of which of the learner's batches are due."""

import tensorflow as tf

from repertory.components import replay
from repertory.components.roads import pacing

_BATCH_SIZE = 4


def _make_pace(samples, learner_steps):
  table = replay.uniform(
    {'x': tf.TensorSpec((), tf.float32)},
    max_size=1000,
    rate_limit=replay.RateLimit(2.0, 10, 100.0),
  )
  return pacing.Pace(table, _BATCH_SIZE, samples, learner_steps)


def test_a_batch_is_due_when_all_its_samples_are():
  # At 7 updates 30 items had been sampled, two more than were learned from.
  pace = _make_pace(30, 7)
  # The next makes 34 samples: (27 − 10) × 2.
  assert not pace.is_due(7, 26)
  assert pace.is_due(7, 27)
  # The one after it 38.
  assert not pace.is_due(8, 28)
  assert pace.is_due(8, 29)


def test_counting_anew_goes_on_from_what_was_sampled():
  pace = _make_pace(0, 7)
  # Two batches came, of 4.
  assert pace.count_anew(9, 15) == 15 - 2 * 4
  # The next makes 19 samples; (19 − 10) × 2 = 18.
  assert not pace.is_due(9, 19)
  assert pace.is_due(9, 20)
  assert pace.count_anew(9, 15) == 0
