"""Tests of stall reports."""

import pytest

from repertory.components import loggers, replay
from repertory.launch.coordination import reports, stall_reports


def _observe(**status) -> reports.Observation:
  return reports.Observation(
    status=loggers.Status('a run', **status),
    phase=reports.ACTING,
    finished=[],
    overdue={},
    idle_seconds=61.2,
    slowest='learner',
  )


@pytest.mark.parametrize(
  ('blocked', 'expected'),
  [
    ('insert', 'the rate limiter blocks actors until samples come'),
    ('sample', 'the rate limiter blocks learners until inserts come'),
    ('', 'neither side waits'),
  ],
)
def test_names_the_waiting_side(blocked, expected):
  seen = _observe(tables=(loggers.TableStatus('replay', 7, 100, blocked),))
  table = replay.TableSpec(
    'replay', (), max_size=100, rate_limit=replay.RateLimit(4.0, 10, 64.0)
  )
  text = stall_reports.describe(
    seen, {'actor/0': 'running; last progress'}, [table]
  )
  lines = text.splitlines()
  assert 'no progress for 61 seconds' in lines[0]
  assert lines[1].startswith("Table 'replay' holds 7 of at most 100 items; ")
  assert expected in lines[1]
  assert 'samples_per_insert=4.0' in lines[2]
  assert lines[3] == 'actor/0: running; last progress.'
