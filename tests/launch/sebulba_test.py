"""Tests of the topology `sebulba`."""

import dataclasses
import itertools
from concurrent import futures

import pytest
import tensorflow as tf

from repertory import launch
from repertory.agents import dqn, impala
from repertory.components.runtime import signals
from repertory.launch.coordination import coordinator as coordinator_lib
from repertory.launch.nodes import node
from repertory.launch.platform import watchdog
from repertory.launch.topologies import sebulba
from support.launch import log_files, pretended_nodes, sessions

pytestmark = pytest.mark.usefixtures('threads_end')

_IMPALA = {
  'unroll_length': 5,
  'batch_size': 2,
  'hidden_sizes': (8,),
  'jit_compile': False,
}


def _experiment(tmp_path, agent='dqn', max_steps=1_500, **settings):
  config = {**_IMPALA} if agent == 'impala' else {'jit_compile': False}
  return launch.make_experiment(
    agent, 'catch', directory=str(tmp_path / 'run'), max_steps=max_steps,
    config={**config, **settings.pop('config', {})},
    **{'num_actors': 2, 'environments_per_actor': 2,
       'evaluation_episodes': 0, **settings},
  )  # fmt: skip


def _run(experiment, **settings):
  return launch.run(experiment, sebulba.Sebulba(**settings), display=False)


def _nodes(tmp_path):
  return {row['node']: row for row in log_files.nodes(tmp_path / 'run')}


class TestCounts:
  def test_dqn_keeps_the_ratio(self, tmp_path):
    status = _run(_experiment(tmp_path)).status
    assert 1_500 <= status.steps <= 1_503
    (table,) = status.tables
    # All steps are items but for those of the open transitions, n = 3.
    assert status.steps - 4 * 3 <= table.inserts <= status.steps
    # All that is due was learned: 16 samples for each item after 200, in
    # batches of 32. Acting may have been behind by the limiter's buffer.
    due = (table.inserts - 200) * 16
    assert due - 32 < 32 * status.learner_steps
    # 2 × (32 + 16 × 4 × 4) = 576, at most.
    assert 32 * status.learner_steps <= due + 576
    replay = log_files.rows(tmp_path / 'run', 'replay')[-1]
    # None is drawn that is not learned from.
    assert replay['samples'] == 32 * status.learner_steps
    learner = log_files.rows(tmp_path / 'run', 'learner')
    assert log_files.total(learner) == status.learner_steps
    actors = log_files.rows(tmp_path / 'run', 'actors')
    assert log_files.total(actors) == status.episodes
    # ε follows from the environment's id, as in every topology.
    epsilons = [
      _nodes(tmp_path)[f'actor/{i}']['epsilons'][j]
      for i in range(2)
      for j in range(2)
    ]
    assert epsilons == pytest.approx([0.4 ** (1 + 7 * i / 3) for i in range(4)])
    assert 'replay' not in dict(status.nodes)

  def test_impala_learns_once_from_each_unroll(self, tmp_path):
    experiment = _experiment(tmp_path, 'impala', evaluation_episodes=4)
    status = _run(experiment, actor_threads=4).status
    (table,) = status.tables
    # Of 2 unrolls each; one may be left over.
    assert status.learner_steps == table.inserts // 2
    assert table.size == table.inserts % 2
    # An unroll has 5 moments, of which one may be that between two episodes.
    # What is open at the end, of 4 environments, is not handed over.
    assert status.steps - 4 * 5 <= 5 * table.inserts <= 1_503 * 10 / 9
    assert status.evaluation_return is not None
    found = _nodes(tmp_path)
    acting = {
      name: row['environment_ids']
      for name, row in found.items()
      if name.startswith('actor')
    }
    assert acting == {f'actor/{i}': [i] for i in range(4)}


class TestFailures:
  def test_learner_that_cannot_be_made_is_named(self, tmp_path):
    class Failing(dqn.DQNBuilder):
      def make_learner(self, *parts):
        raise RuntimeError('nothing to learn')

    experiment = dataclasses.replace(
      _experiment(tmp_path),
      builder=Failing(dqn.DQNConfig(jit_compile=False)),
    )
    with pytest.raises(launch.NodeError, match='nothing to learn') as error:
      _run(experiment)
    assert error.value.failure.node == 'learner'

  def test_failed_learner_ends_the_waits_of_actors(self, tmp_path):
    class Failing(impala.IMPALABuilder):
      def make_learner(self, *parts):
        learner = super().make_learner(*parts)
        steps, step = itertools.count(), learner.step

        def failing_step():
          if next(steps) == 3:
            raise RuntimeError('nothing to learn')
          step()

        learner.step = failing_step
        return learner

    experiment = dataclasses.replace(
      _experiment(tmp_path, max_steps=10**6),
      builder=Failing(impala.IMPALAConfig(**_IMPALA)),
    )
    with pytest.raises(launch.NodeError, match='nothing to learn') as error:
      _run(experiment)
    assert error.value.failure.node == 'learner'


class TestWaitForTheLearner:
  @pytest.fixture(name='wait')
  def _wait(self, tmp_path):
    experiment = _experiment(tmp_path, timeout_seconds=0.1)
    with sessions.open_session(experiment, topology='single') as session:
      coordinator = coordinator_lib.Coordinator(
        session, 0, pretended_nodes.Clock()
      )
      context = node.Context('actor/0', coordinator, {}, signals.StopSignal())
      yield (
        lambda: sebulba._wait_for(futures.Future(), context, session),
        coordinator,
      )
      coordinator.close()

  def test_time_out_names_it(self, wait, monkeypatch):
    monkeypatch.setattr(watchdog, 'START_SECONDS', 0.0)
    with pytest.raises(TimeoutError, match="start of node 'learner'"):
      wait[0]()

  def test_ends_with_the_run(self, wait):
    call, coordinator = wait
    coordinator.stop('interrupted')
    with pytest.raises(signals.Stopped):
      call()


class TestRefusals:
  @pytest.mark.parametrize(
    ('settings_of_sebulba', 'settings', 'message'),
    [
      ({'actor_threads': -1}, {}, 'actor_threads must be at least 0, got -1'),
      ({'actor_threads': 3}, {}, 'actor_threads must divide the 4 environm'),
      ({'inference_devices': ('cpu',)}, {}, "or 'GPU:1', got 'cpu'"),
      (
        {'inference_devices': ('CPU:0',) * 3},
        {},
        'at most 2, one per actor thread',
      ),
      ({'learner_devices': ('CPU:1', 'CPU:1')}, {}, 'must differ'),
      (
        {'learner_devices': ('CPU:0', 'CPU:1')},
        {'config': {'jit_compile': True}},
        r'\(jit_compile=False\)',
      ),
      # A device that this process has used cannot be divided any more.
      ({'inference_devices': ('CPU:7',)}, {}, 'got CPU:7; it has 1 of kind'),
    ],
  )
  def test_bad_settings(self, tmp_path, settings_of_sebulba, settings, message):
    tf.config.list_logical_devices()  # Uses the device.
    with pytest.raises(ValueError, match=message):
      _run(_experiment(tmp_path, **settings), **settings_of_sebulba)
    assert not (tmp_path / 'run').exists()

  def test_processes(self, tmp_path):
    with pytest.raises(ValueError, match='launch_type must be local_mt'):
      launch.run(_experiment(tmp_path), 'sebulba', 'local_mp', display=False)
