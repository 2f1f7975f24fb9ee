"""Tests of the agent assembled from components."""

import pathlib
import re

import numpy as np
import pytest

from repertory.components import replay
from repertory.components.replay import local
from repertory.examples import parts_by_hand
from support.replay import local_fixture, replay_fixture

_ROOT = pathlib.Path(__file__).resolve().parents[2]


def _has_learned(returns):
  return np.mean(returns[:100]) < 0 and np.mean(returns[-100:]) > 0.5


def test_is_the_same_each_time():
  with replay_fixture.no_threads_left():
    some = parts_by_hand.main(max_steps=900)
  few = parts_by_hand.main(max_steps=600)
  assert some[: len(few)] == few
  assert len(some) > len(few) > 0


@pytest.mark.chaos
def test_learns():
  with replay_fixture.no_threads_left():
    assert _has_learned(parts_by_hand.main())


@pytest.mark.chaos
def test_learns_over_a_server():
  with replay_fixture.no_threads_left():
    assert _has_learned(parts_by_hand.main(over_server=True))


def test_deadlock_error_is_that_of_the_page():
  page = (_ROOT / 'docs' / 'components_by_hand.md').read_text('utf-8')
  (message,) = re.findall(r'(?ms)^```text\n(.*?)^```$', page)
  limit = replay.RateLimit.with_default_buffer(8.0, 200, batch_size=32)
  table = local_fixture.make_table(local_fixture.make_uniform(10_000, limit))
  local_fixture.insert(table, range(12))
  with pytest.raises(replay.DeadlockError) as error:
    next(local.LocalBatches(table, 32))
  assert str(error.value).split() == message.split()


def test_table_beside_single_is_in_the_order_of_both():
  page = (_ROOT / 'docs' / 'topologies.md').read_text('utf-8')
  rows = re.findall(r'(?m)^\| .* \| `(.+)` \| `(.+)` \|$', page)
  scripts = 'examples/parts_by_hand.py', 'launch/topologies/single.py'
  for path, lines in zip(scripts, zip(*rows[-8:])):
    script = (_ROOT / path).read_text('utf-8')
    places = [script.find(line) for line in lines]
    assert -1 not in places
    assert places == sorted(places)
