"""Tests of which of the learner's batches are due."""

import time

import numpy as np
import pytest
import tensorflow as tf

from repertory.components import replay, signals
from repertory.launch.nodes import pacing

TABLE = replay.uniform(
  {'x': tf.TensorSpec((), tf.float32)},
  max_size=1000,
  rate_limit=replay.RateLimit(2.0, 10, 100.0),
)
_BATCH_SIZE = 4


@pytest.fixture(name='connection')
def _connection():
  server = replay.make_server([TABLE])
  yield replay.Connection(f'localhost:{server.port}', 0.2, signals.StopSignal())
  server.stop()


def _sample(connection, num_items: int) -> None:
  with connection.client.trajectory_writer(1) as writer:
    for _ in range(20):
      writer.append([np.zeros(4, np.uint8)])  # As it is packed.
      writer.create_item(TABLE.name, 1.0, [writer.history[0][-1]])
    writer.flush()
  for _ in range(num_items):
    list(connection.client.sample(TABLE.name, 1))


def _status(inserts: int, samples: int) -> replay.TableStatus:
  return replay.TableStatus(20, 1000, inserts, samples)


def test_a_batch_is_due_when_all_its_samples_are(connection):
  # At 7 updates 30 items had been sampled, two more than were learned from.
  pace = pacing.Pace(connection, TABLE, _BATCH_SIZE, _status(25, 30), 7)
  # The next makes 34 samples: (27 − 10) × 2.
  assert not pace.is_due(7, 26)
  assert pace.is_due(7, 27)
  # The one after it 38.
  assert not pace.is_due(8, 28)
  assert pace.is_due(8, 29)


def test_counting_anew_goes_on_from_what_was_sampled(connection):
  pace = pacing.Pace(connection, TABLE, _BATCH_SIZE, _status(0, 0), 7)
  _sample(connection, 15)
  # Two batches came, of 4.
  assert pace.count_anew(9) == 15 - 2 * 4
  # The next makes 19 samples; (19 − 10) × 2 = 18.
  assert not pace.is_due(9, 19)
  assert pace.is_due(9, 20)
  assert pace.count_anew(9) == 0


def test_waits_for_one_batch_no_longer_than_the_time_out(connection):
  pace = pacing.Pace(connection, TABLE, _BATCH_SIZE, _status(0, 0), 0)
  pace.count_anew(0)
  pace.count_anew(0)
  time.sleep(0.3)
  # A batch came meanwhile.
  pace.count_anew(1)
  time.sleep(0.3)
  with pytest.raises(
    TimeoutError, match=r"0\.2 seconds for a batch .*'replay'"
  ):
    pace.count_anew(1)
