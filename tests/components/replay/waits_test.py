"""Tests of the errors of waits on a table."""

import numpy as np
import pytest

from repertory.components import replay
from repertory.components.replay import local
from support.replay import local_fixture, replay_fixture

_LIMIT = replay.RateLimit(2.0, min_size=5, error_buffer=8.0)
_TABLE = replay.uniform(replay_fixture.SIGNATURE, 100, _LIMIT)
_NUMBERS = (
  "Table 'replay' (samples_per_insert 2, min_size 5, error_buffer 8) holds {} "
  'of at most 100 items, after {} inserts and 0 samples.'
)


@pytest.mark.parametrize(
  ('side', 'text', 'num_items'),
  [
    ('learner', "a batch from table 'replay' of this process.", 0),
    ('actor', "table 'replay' of this process to accept new items", 9),
  ],
)
def test_errors_have_the_numbers_of_the_table(side, text, num_items):
  table = local_fixture.make_table(_TABLE)
  place = local.WaitPolicy(0.3)
  batches = local.LocalBatches(table, 4, place)
  writer = local_fixture.open_writer(table, place, max_pending_items=0)
  if side == 'actor':
    writer.put([np.arange(10)])
  wait = batches.__next__ if side == 'learner' else writer.wait
  with pytest.raises(TimeoutError, match=text) as error:
    replay_fixture.Call(wait).result()
  assert _NUMBERS.format(num_items, num_items) in str(error.value)
