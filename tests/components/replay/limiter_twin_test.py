"""Tests that the rate limiter decides as Reverb's does."""

import contextlib
import math

import numpy as np
import pytest

from repertory.components import replay
from repertory.components.replay import rate_limiters
from support.replay import replay_fixture

reverb = pytest.importorskip('reverb')
server_lib = pytest.importorskip('repertory.components.replay.reverb.server')

_NUM_CALLS = 10_000
_MAX_SIZE = 50
# Also below 1, and with room for more than the table holds.
_LIMITS = {
  'half': replay.RateLimit(0.5, min_size=1, error_buffer=1.0),
  'odd': replay.RateLimit(1.7, min_size=20, error_buffer=6.3),
  'many': replay.RateLimit(8.0, min_size=50, error_buffer=100.0),
  'free': replay.RateLimit(1.0, min_size=7, error_buffer=math.inf),
  'queue': None,
}


@pytest.mark.chaos
@pytest.mark.parametrize('name', _LIMITS)
def test_random_calls_are_allowed_and_blocked_alike(name):
  limit = _LIMITS[name]
  table = replay.TableSpec('replay', replay_fixture.SIGNATURE, _MAX_SIZE, limit)
  twin, random = server_lib.make_table(table), np.random.default_rng(0)
  limiter = rate_limiters.Limiter(limit, _MAX_SIZE)
  blocked = {'insert': 0, 'sample': 0}
  server = reverb.Server([twin])
  with (
    contextlib.ExitStack() as stack,
    reverb.Client(f'localhost:{server.port}').trajectory_writer(1) as writer,
  ):
    stack.callback(server.stop)
    client = reverb.Client(f'localhost:{server.port}')
    (record,) = table.packing.pack([np.array([1])])
    size = 0
    for number in range(_NUM_CALLS):
      # Phases in which one side is faster, so that each is blocked at times.
      wants_insert = random.random() < (0.02, 0.95)[number // 500 % 2]
      if wants_insert:
        may = limiter.num_insertable(1) == 1
        assert may == twin.can_insert(1), (limiter.inserts, limiter.samples)
        if may:
          writer.append([record])
          writer.create_item('replay', 1.0, [writer.history[0][-1]])
          writer.flush()
          limiter.inserts += 1
          size = min(size + 1, _MAX_SIZE)
      else:
        may = limiter.may_sample(1, size)
        assert may == twin.can_sample(1), (limiter.inserts, limiter.samples)
        if may:
          next(iter(client.sample('replay', 1)))
          limiter.samples += 1
          size -= limit is None
      blocked['insert' if wants_insert else 'sample'] += not may
    info = twin.info
  assert info.current_size == size
  counts = info.rate_limiter_info
  assert counts.insert_stats.completed == limiter.inserts
  assert counts.sample_stats.completed == limiter.samples
  assert blocked['sample'] > 100
  assert blocked['insert'] > 100 or name == 'free'
