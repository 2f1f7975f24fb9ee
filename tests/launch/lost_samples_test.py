"""Tests that learning goes on when items that were sampled are lost."""

import json

import pytest

from repertory import launch
from repertory.components import datasets, replay, signals
from repertory.launch import coordinator as coordinator_lib
from repertory.launch import nodes
from repertory.launch import session as session_lib


@pytest.fixture
def session(tmp_path):
  experiment = launch.make_experiment(
    'impala',
    'catch',
    max_steps=10_000,
    directory=str(tmp_path / 'run'),
    evaluation_episodes=0,
    config={
      'batch_size': 4,
      'unroll_length': 5,
      'max_queue_size': 64,
      'hidden_sizes': (8,),
      'jit_compile': False,
    },
  )
  with session_lib.open_session(experiment) as opened:
    yield opened


def _steal_samples(server, table) -> int:
  """Samples all that the rate limiter lets go; returns how many items."""
  connection = replay.Connection(
    f'localhost:{server.port}', 1.0, signals.StopSignal()
  )
  thief = datasets.ReplayDataset(connection, table, 4)
  before = replay.table_status(connection.client)[table.name].samples
  with pytest.raises(TimeoutError):
    while True:
      next(thief)
  thief.close()
  return replay.table_status(connection.client)[table.name].samples - before


def test_learner_that_starves_counts_anew(session, monkeypatch):
  monkeypatch.setattr(nodes, '_PATIENCE_SECONDS', 1.0)
  coordinator = coordinator_lib.Coordinator(session, '')
  server = nodes.start_replay(session)
  connection = replay.Connection(
    f'localhost:{server.port}', 60.0, signals.StopSignal()
  )
  learner = nodes.LearnerNode(session, connection, coordinator)
  actor = nodes.ActorNode(
    session, 'actor/0', range(1), connection, learner, coordinator
  )
  try:
    for _ in range(201):
      actor.step()
    actor.flush()
    assert actor.num_items == 40
    # The dataset has some already.
    stolen = _steal_samples(server, session.tables[0])
    assert stolen >= 4
    learner.catch_up(actor)
    steps = learner.version
    assert 4 * steps <= 40 - stolen
    for _ in range(100):
      actor.step()
      learner.catch_up(actor)
    assert learner.version == steps + 5
  finally:
    actor.close()
    learner.close()
    server.stop()
    coordinator.close()
  log = f'{session.log_directory}/nodes.jsonl'
  with open(log) as file:
    warnings = [json.loads(line).get('warning', '') for line in file]
  assert sum('lost items' in warning for warning in warnings) == 1
