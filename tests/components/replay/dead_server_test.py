"""Tests of waits on a replay server that is dead."""

import threading

import numpy as np
import pytest

from repertory.components import adders, replay
from repertory.components.runtime import signals
from support.replay import replay_fixture

client_lib = pytest.importorskip('repertory.components.replay.reverb.client')


def _take_all(dataset):
  """Takes the batches that had arrived, then waits."""
  while True:
    next(dataset)


def test_waits_on_a_killed_server_end(monkeypatch):
  with replay_fixture.no_threads_left():
    server = replay_fixture.ServerProcess()
    connection = server.connect(timeout_seconds=2)
    replay_fixture.insert(connection, range(3))
    writer = replay_fixture.make_writer(connection, replay_fixture.TRANSITIONS)
    adder = adders.Transitions(1, 0.9).make_adder(writer, 1)
    replay_fixture.play(adder, [0])
    table = replay_fixture.make_prioritized()
    dataset = replay.ReplayDataset(connection, table, batch_size=4)
    next(dataset)
    patient = server.connect()
    server.freeze()
    status = replay_fixture.Call(replay.table_status, patient.client)
    assert status.is_waiting()
    server.kill()
    with pytest.raises(ConnectionError, match=f'{patient.address} went away'):
      status.result()
    calls = {
      'transitions': replay_fixture.Call(replay_fixture.play, adder, [2]),
      'replay': replay_fixture.Call(_take_all, dataset),
    }
    for name, call in calls.items():
      message = f"table '{name}' of .*{connection.address}"
      with pytest.raises(TimeoutError, match=message):
        call.result(15)
    with pytest.raises(TimeoutError):
      replay_fixture.Call(adder.close).result(10)
    dataset.close()
    monkeypatch.setattr(client_lib, 'STATUS_TIMEOUT_SECONDS', 1)
    message = f'{connection.address} did not answer within 1 seconds'
    with pytest.raises(TimeoutError, match=message):
      replay_fixture.Call(replay.table_status, connection.client).result(8)


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
  hasty = updater = replay.PriorityUpdater(connection, 'replay', floor=0.01)
  message = f"{connection.address} to take new priorities for table 'replay'"
  with pytest.raises(TimeoutError, match=message):
    replay_fixture.Call(update).result(5)
  with pytest.raises(TimeoutError, match="last priorities for table 'replay'"):
    replay_fixture.Call(updater.flush).result(5)
  # The other way to end the wait.
  connection = server.connect(timeout_seconds=60)
  stopped = updater = replay.PriorityUpdater(connection, 'replay', floor=0.01)
  call = replay_fixture.Call(update)
  assert call.is_waiting()
  connection.stop.set()
  with pytest.raises(signals.Stopped):
    call.result(2)
  # Priorities that cannot be written do not delay the end.
  for waiting in (hasty, stopped):
    replay_fixture.Call(waiting.close, 0.5).result(3)
