"""Tests of the priority updater, by what the table then samples."""

import numpy as np
import pytest

from repertory.components import replay
from repertory.components.runtime import signals
from support.replay import replay_fixture

FLOOR = 0.25


@pytest.fixture(autouse=True)
def _no_threads_left():
  with replay_fixture.no_threads_left():
    yield


@pytest.fixture(name='connection')
def _connection():
  with replay_fixture.serve(replay_fixture.make_prioritized()) as connection:
    yield connection


def _insert(connection, num_items):
  """Inserts items of priority 1; returns their keys in order."""
  replay_fixture.insert(connection, range(num_items))
  keys = {}
  while len(keys) < num_items:
    for item in replay_fixture.sample(connection, 50):
      keys[int(item.data['x'])] = item.info.key
  return np.array([keys[i] for i in range(num_items)], np.uint64)


def _priorities(connection, num_items):
  """Returns the priority and probability of each item, from samples."""
  found = {}
  for item in replay_fixture.sample(connection, 400):
    found[int(item.data['x'])] = (item.info.priority, item.info.probability)
  assert len(found) == num_items
  return [found[i] for i in range(num_items)]


def _updater(connection, table=replay.DEFAULT_TABLE, floor=FLOOR):
  return replay.PriorityUpdater(connection, table, floor)


def test_table_survives_a_priority_that_is_not_finite(connection):
  keys = _insert(connection, 2)
  updater = _updater(connection)
  with pytest.raises(FloatingPointError, match=r'must be finite.*inf'):
    updater.update(keys, np.array([2.0, np.inf]))
  # Table and updater continue unchanged.
  replay_fixture.Call(replay_fixture.insert, connection, [2]).result()
  call = replay_fixture.Call(_priorities, connection, 3)
  assert call.result() == [(1, 1 / 3)] * 3
  # A key that no item has, like that of demonstrations, is ignored.
  keys = np.append(keys, np.uint64(2**64 - 1))
  updater.update(keys, np.array([2.0, 1.0, 9.0]))
  updater.close()
  assert _priorities(connection, 3) == [(2, 2 / 4), (1, 1 / 4), (1, 1 / 4)]


def test_error_of_the_server_is_raised_by_the_next_update(connection):
  keys = _insert(connection, 1)
  updater = _updater(connection, table='no_such_table')

  def fails():
    try:
      updater.update(keys, np.ones(1))
    except signals.Stopped:
      raise
    except Exception as error:
      return 'no_such_table' in str(error)
    return False

  replay_fixture.wait_until(fails, 'an error that names the table')
  replay_fixture.Call(updater.close).result(2)
