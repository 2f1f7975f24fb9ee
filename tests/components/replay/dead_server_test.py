"""Tests of all waits on a replay server that is dead."""

import gc
import threading

import dm_env
import numpy as np
import pytest

from repertory.components import adders, datasets, replay
from repertory.components.replay import server as server_lib
from repertory.components.runtime import signals
from support.replay import replay_fixture


def _batch(step_type, number):
  return dm_env.TimeStep(
    np.array([step_type], np.int32),
    np.zeros(1, np.float32),
    np.ones(1, np.float32),
    np.array([number], np.int64),
  )


def _add(adder, number):
  """Adds an episode of one step, which makes an item."""
  adder.add_first(_batch(dm_env.StepType.FIRST, number))
  action = np.zeros(1, np.int32)
  adder.add(action, _batch(dm_env.StepType.LAST, number + 1))


def _make_adder(connection):
  writer = replay_fixture.make_writer(connection, replay_fixture.TRANSITIONS)
  adder = adders.Transitions(1, 0.9).make_adder(writer, 1)
  _add(adder, 0)
  return adder


def _make_dataset(connection):
  table = replay_fixture.make_prioritized()
  dataset = datasets.ReplayDataset(connection, table, batch_size=4)
  next(dataset)
  return dataset


def _make_updater(connection):
  return replay.PriorityUpdater(connection, replay.DEFAULT_TABLE, floor=0.01)


# Factories of parts, and the timeouts of the parts.
_PARTS = {
  'adder_hasty': (_make_adder, 2),
  'adder_patient': (_make_adder, 60),
  'dataset_hasty': (_make_dataset, 5),
  'dataset_to_close': (_make_dataset, 60),
  'dataset_to_stop': (_make_dataset, 60),
}


class Killed:
  """Connections and parts that were in use when their server was killed."""

  def __init__(self):
    server = replay_fixture.ServerProcess()
    self.connections, self.parts = {}, {}
    try:
      self._use(server)
      # One call is in progress at that time.
      server.freeze()
      client = server.connect().client
      self.status = replay_fixture.Call(replay.table_status, client)
      assert self.status.is_waiting()
    finally:
      server.kill()
    # These take their time, so they run while other tests do.
    self.addition = replay_fixture.Call(_add, self.parts['adder_hasty'], 2)
    self.batches = replay_fixture.Call(_take_all, self.parts['dataset_hasty'])

  def _use(self, server):
    connection = server.connect()
    replay_fixture.insert(connection, range(3))
    for name, (make, timeout_seconds) in _PARTS.items():
      self.connections[name] = server.connect(timeout_seconds=timeout_seconds)
      self.parts[name] = make(self.connections[name])
    transitions = replay_fixture.table_status(
      connection, replay_fixture.TRANSITIONS
    )
    assert transitions.size == 2

  def close(self):
    """Ends the remaining threads."""
    for name, part in self.parts.items():
      self.connections[name].stop.set()
      part.close()
    self.parts.clear()
    gc.collect()


@pytest.fixture(scope='module', name='killed')
def _killed():
  with replay_fixture.no_threads_left():
    killed = Killed()
    yield killed
    killed.close()


def _take_all(dataset):
  """Takes the batches that had arrived, then waits."""
  while True:
    next(dataset)


def test_status_of_a_server_that_dies_meanwhile(killed):
  address = killed.connections['adder_hasty'].address
  with pytest.raises(ConnectionError, match=f'{address} went away'):
    killed.status.result()


def test_status_raises_within_its_time_out(killed, monkeypatch):
  monkeypatch.setattr(server_lib, 'STATUS_TIMEOUT_SECONDS', 1)
  client = killed.connections['adder_hasty'].client

  def ask():
    while True:
      try:
        replay.table_status(client)
      except ConnectionError:  # The news that the server has gone.
        continue

  with pytest.raises(TimeoutError) as error:
    replay_fixture.Call(ask).result(8)
  assert client.server_address in str(error.value)
  assert '1 seconds' in str(error.value)


def test_adder_times_out(killed):
  adder = killed.parts.pop('adder_hasty')
  with pytest.raises(TimeoutError) as error:
    killed.addition.result(10)
  assert f"table '{replay_fixture.TRANSITIONS}'" in str(error.value)
  assert killed.connections['adder_hasty'].address in str(error.value)
  with pytest.raises(TimeoutError):
    replay_fixture.Call(adder.close).result(10)


def test_adder_stops(killed):
  adder = killed.parts.pop('adder_patient')
  call = replay_fixture.Call(_add, adder, 2)
  assert call.is_waiting()
  killed.connections['adder_patient'].stop.set()
  with pytest.raises(signals.Stopped):
    call.result(2)
  replay_fixture.Call(adder.close).result(2)


def test_dataset_times_out(killed):
  with pytest.raises(TimeoutError) as error:
    killed.batches.result(15)
  assert "table 'replay'" in str(error.value)
  assert killed.connections['dataset_hasty'].address in str(error.value)


def test_dataset_ends_when_closed(killed):
  dataset = killed.parts['dataset_to_close']
  call = replay_fixture.Call(_take_all, dataset)
  assert call.is_waiting()
  replay_fixture.Call(dataset.close).result(2)
  with pytest.raises(signals.Stopped):
    call.result(2)


def test_dataset_stops(killed):
  call = replay_fixture.Call(_take_all, killed.parts['dataset_to_stop'])
  assert call.is_waiting()
  killed.connections['dataset_to_stop'].stop.set()
  with pytest.raises(signals.Stopped):
    call.result(3)


@pytest.fixture(name='frozen')
def _frozen():
  """Provides a server that does not answer, and keys of its items.

  It is frozen and not killed, because a priority updater's pending call ends
  only when its server answers.
  """
  with replay_fixture.no_threads_left():
    server = replay_fixture.ServerProcess()
    connection = server.connect()
    replay_fixture.insert(connection, [0])
    (item,) = replay_fixture.sample(connection, 1)
    server.freeze()
    yield server, np.array([item.info.key], np.uint64)
    server.thaw()
    replay_fixture.wait_until(
      lambda: 'priority_updater' not in {t.name for t in threading.enumerate()},
      'the end of the priority updaters',
    )
    server.kill()


def test_priorities_do_not_wait_forever(frozen):
  """The learner continues until the queue is full, and then waits and stops."""

  def update():
    for _ in range(100):
      updater.update(keys, np.ones(1))

  server, keys = frozen
  connection = server.connect(timeout_seconds=0.5)
  updater = _make_updater(connection)
  with pytest.raises(TimeoutError) as error:
    replay_fixture.Call(update).result(5)
  assert connection.address in str(error.value)
  assert "priorities for table 'replay'" in str(error.value)
  # The other way to end the wait.
  connection = server.connect(timeout_seconds=60)
  stopped = _make_updater(connection)
  updater, hasty = stopped, updater
  call = replay_fixture.Call(update)
  assert call.is_waiting()
  connection.stop.set()
  with pytest.raises(signals.Stopped):
    call.result(2)
  # Priorities that cannot be written do not delay the end.
  for waiting in (hasty, stopped):
    replay_fixture.Call(waiting.close, 0.5).result(3)
