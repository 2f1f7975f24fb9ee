"""Tests that learning continues after the loss of sampled items."""

import json

import pytest

from repertory import launch
from repertory.components import replay
from repertory.components.runtime import signals
from repertory.components.transports import learner_side
from repertory.launch.coordination import coordinator as coordinator_lib
from repertory.launch.nodes import learner as nodes
from repertory.launch.nodes import replay as replay_lib
from repertory.launch.opening import resuming
from support.launch import log_files, lone_nodes
from support.system import program

_SECONDS = 120

_THREADS = """
import threading
from repertory import launch
from repertory.agents import impala
from repertory.components import replay
from repertory.components.transports import learner_side
from repertory.environments.registry import registry

learner_side.BATCH_TIMEOUT_SECONDS = 1.0

class Builder(impala.IMPALABuilder):
  def make_dataset(self, experience, connection):
    def steal():
      thief = replay.ReplayDataset(
        connection, experience.table, experience.batch_size)
      next(thief)
      thief.close()
    threading.Thread(target=steal, daemon=True).start()
    return super().make_dataset(experience, connection)

if __name__ == '__main__':
  config = impala.IMPALAConfig(
    batch_size=4, unroll_length=5, max_queue_size=64, hidden_sizes=(8,),
    jit_compile=False)
  experiment = launch.Experiment(
    Builder(config), registry.make_factory('catch'), max_steps=500,
    directory='run', environments_per_actor=1, evaluation_episodes=0,
    timeout_seconds=20)
  result = launch.run(experiment, 'distributed', 'local_mt', display=False)
  print('LEARNED', result.status.learner_steps)
"""


@pytest.fixture
def session(tmp_path):
  experiment = launch.make_experiment(
    'impala',
    'catch',
    max_steps=10_000,
    directory=str(tmp_path / 'run'),
    environments_per_actor=1,
    evaluation_episodes=0,
    config={
      'batch_size': 4,
      'unroll_length': 5,
      'max_queue_size': 64,
      'hidden_sizes': (8,),
      'jit_compile': False,
    },
  )
  with resuming.open_session(experiment) as opened:
    yield opened


def _steal_samples(address, table) -> int:
  """Samples all the rate limiter allows; returns the number of items."""
  connection = replay.Connection(address, 1.0, signals.StopSignal())
  thief = replay.ReplayDataset(connection, table, 4)
  before = replay.table_status(connection.client)[table.name].samples
  with pytest.raises(TimeoutError):
    while True:
      next(thief)
  thief.close()
  return replay.table_status(connection.client)[table.name].samples - before


@pytest.mark.chaos
def test_learner_resets_its_count_after_a_batch_timeout(session, monkeypatch):
  monkeypatch.setattr(learner_side, 'BATCH_TIMEOUT_SECONDS', 1.0)
  coordinator = coordinator_lib.Coordinator(session, '')
  server = replay_lib.ReplayNode(
    lone_nodes.make_context('replay', coordinator), session
  )
  connection = replay.Connection(server.address, 60.0, signals.StopSignal())
  learner = nodes.LearnerNode(
    lone_nodes.make_context('learner', coordinator, connection.stop),
    session,
    session.make_transport(connection),
  )
  actor = lone_nodes.make_actor(session, connection, learner, coordinator)
  try:
    for _ in range(201):
      actor.step()
    actor.flush()
    assert actor.num_items == 40
    # The dataset has some already.
    stolen = _steal_samples(server.address, session.tables[0])
    assert stolen >= 4
    learner.catch_up(actor.num_items, actor.flush)
    steps = learner.version
    assert 4 * steps <= 40 - stolen
    for _ in range(100):
      actor.step()
      learner.catch_up(actor.num_items, actor.flush)
    assert learner.version == steps + 5
  finally:
    actor.close()
    learner.close()
    server.close()
    coordinator.close()
  log = f'{session.log_directory}/nodes.jsonl'
  with open(log) as file:
    warnings = [json.loads(line).get('warning', '') for line in file]
  assert sum('sampled items' in warning for warning in warnings) == 1


def _run_threads(folder):
  """Runs to the end; returns items, learner steps and warnings."""
  script = folder / 'threads.py'
  script.write_text(_THREADS)
  ended = program.Program([str(script)], str(folder)).wait(_SECONDS)
  assert ended.code == 0, ended.output
  assert ended.left == []
  state = folder / 'run' / 'checkpoints' / '00000001' / 'state.json'
  state = json.loads(state.read_text())
  learner_steps = state['counts']['learner_steps']
  assert f'LEARNED {learner_steps}' in ended.output
  rows = log_files.nodes(folder / 'run')
  return (
    state['tables']['replay']['inserts'],
    learner_steps,
    [row['warning'] for row in rows if 'warning' in row],
  )


@pytest.mark.chaos
def test_learner_in_a_thread_ends_without_lost_items(tmp_path):
  """Its last batch never comes, since a queue delivers each item once."""
  items, learner_steps, warnings = _run_threads(tmp_path)
  # Two of each episode of 9 steps; 500 = 55 × 9 + 5.
  assert 110 <= items <= 111
  # The thief had one batch, and perhaps three on their way.
  assert items - 5 * 4 < 4 * learner_steps <= items - 4
  assert len(warnings) == 1
  assert 'sampled items' in warnings[0]
