"""Tests of stall reports."""

import types
from typing import Any

import pytest

from repertory.components import loggers, replay
from repertory.launch.coordination import reports, stall_reports


@pytest.mark.parametrize(
  ('blocked', 'expected'),
  [
    ('insert', 'the rate limiter blocks actors until samples come'),
    ('sample', 'the rate limiter blocks learners until inserts come'),
    ('', 'neither side waits'),
  ],
)
def test_names_the_waiting_side(blocked, expected, tmp_path):
  status = loggers.Status(
    'a run', tables=(loggers.TableStatus('replay', 7, 100, blocked),)
  )
  seen = reports.Observation(status, reports.ACTING, [], {}, 61.2, 'learner')
  table = replay.TableSpec(
    'replay', (), max_size=100, rate_limit=replay.RateLimit(4.0, 10, 64.0)
  )
  session: Any = types.SimpleNamespace(
    tables=[table], log_directory=str(tmp_path / 'logs')
  )
  nodes = {'actor/0': 'running; last progress'}
  failure = stall_reports.write(seen, nodes, {'actor/0': 'its stack'}, session)
  assert failure.node == 'learner'
  lines = failure.cause.splitlines()
  assert 'no progress for 61 seconds' in lines[0]
  assert lines[1].startswith("Table 'replay' holds 7 of at most 100 items; ")
  assert expected in lines[1]
  assert 'samples_per_insert=4.0' in lines[1]
  assert lines[2] == 'actor/0: running; last progress.'
  path = tmp_path / 'logs' / 'stall.txt'
  assert str(path) in lines[3]
  assert 'Threads of actor/0:\nits stack' in path.read_text()
