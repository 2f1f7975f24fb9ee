"""Tests of the topology `sebulba`."""

import dataclasses
import itertools
import signal
import threading
import time

import pytest

from repertory import launch
from repertory.agents import dqn, impala
from repertory.components.runtime import signals
from repertory.environments.registry import registry
from repertory.launch.coordination import coordinator as coordinator_lib
from repertory.launch.coordination import starts
from repertory.launch.nodes import local_learner, node
from repertory.launch.opening import resuming
from repertory.launch.topologies import sebulba, single
from support.environments import troubled_environments
from support.launch import log_files, pretended_nodes
from support.system import program, stacks

pytestmark = pytest.mark.usefixtures('threads_end')

_SECONDS = 300
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

  @pytest.mark.parametrize(
    ('actor_threads', 'ids'),
    [
      (4, [1, 1, 1, 1]),
      pytest.param(0, [2, 2], marks=pytest.mark.chaos),
      pytest.param(1, [4], marks=pytest.mark.chaos),
    ],
  )
  def test_impala_learns_once_from_each_unroll(
    self, tmp_path, actor_threads, ids
  ):
    experiment = _experiment(tmp_path, 'impala', evaluation_episodes=4)
    status = _run(experiment, actor_threads=actor_threads).status
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
    numbers = itertools.count()
    assert acting == {
      f'actor/{i}': [next(numbers) for _ in range(size)]
      for i, size in enumerate(ids)
    }


class _Slow:
  """Makes environments; the second one is slow."""

  def __init__(self, seconds):
    self._seconds = seconds
    self._numbers = itertools.count(1)

  def __call__(self, seed):
    environment = registry.make('catch', seed)
    if next(self._numbers) == 2:  # After the one that is tried.
      step = environment.step

      def slow_step(action):
        time.sleep(self._seconds)
        return step(action)

      environment.step = slow_step
    return environment


class _Batches:
  """Records the variable age of items."""

  def __init__(self, batches, lags):
    self._batches = batches
    self._lags = lags
    self.num_taken = 0

  def __getattr__(self, name):
    return getattr(self._batches, name)

  def __iter__(self):
    return self

  def __next__(self):
    sample = next(self._batches)
    self._lags += [self.num_taken - v for v in sample.data.version.tolist()]
    self.num_taken += 1
    return sample


class _Noting(impala.IMPALABuilder):
  """Records the lag of each unroll."""

  def __init__(self, config):
    super().__init__(config)
    self.lags = []

  def make_learner(self, update, batches, *parts):
    return super().make_learner(update, _Batches(batches, self.lags), *parts)


@pytest.mark.chaos
def test_lag_is_bounded_although_an_actor_is_slow(tmp_path):
  config = {**_IMPALA, 'unroll_length': 2, 'batch_size': 1}
  builder = _Noting(impala.IMPALAConfig(**config, max_queue_size=3))
  experiment = launch.Experiment(
    builder, _Slow(0.15), max_steps=120, directory=str(tmp_path / 'run'),
    num_actors=2, environments_per_actor=1, evaluation_episodes=0,
  )  # fmt: skip
  status = _run(experiment).status
  assert len(builder.lags) == status.learner_steps
  # 3 N + max_queue_size items, of which each is a batch, and 2 updates. While
  # the slow one makes an unroll, the other could make dozens.
  assert 0 <= min(builder.lags) <= max(builder.lags) <= 3 * 2 + 3 + 2
  rows = log_files.rows(tmp_path / 'run', 'learner')
  assert max(row['policy_lag'] for row in rows) <= max(builder.lags)


class TestResuming:
  @pytest.mark.chaos
  def test_resumes_with_its_replay(self, tmp_path):
    first = _run(_experiment(tmp_path, max_steps=600)).status
    checkpoint = resuming.load_checkpoint(str(tmp_path / 'run'))
    assert checkpoint.state['transport'] == 'local'
    second = _run(_experiment(tmp_path, max_steps=1_200)).status
    assert second.message == 'resumed from checkpoint 00000001'
    assert 1_200 <= second.steps <= 1_203
    inserts = second.tables[0].inserts
    # Of each run, the open transitions are missing.
    assert second.steps - 2 * 4 * 3 <= inserts <= second.steps
    assert (inserts - 200) * 16 - 32 < 32 * second.learner_steps
    assert second.tables[0].size == inserts > first.tables[0].size

  @pytest.mark.chaos
  def test_may_change_topology(self, tmp_path):
    _run(_experiment(tmp_path, max_steps=400))
    experiment = _experiment(tmp_path, max_steps=800)
    status = launch.run(experiment, 'single', display=False).status
    assert status.message == 'resumed from checkpoint 00000001'
    assert 800 <= status.steps <= 803
    experiment = _experiment(tmp_path, max_steps=1200)
    with_server = single.Single(replay_server=True)
    status = launch.run(experiment, with_server, display=False).status
    assert status.message.startswith(
      'resumed from checkpoint 00000002, but with empty replay tables: '
    )
    assert 1200 <= status.steps <= 1203


class TestFailures:
  def test_environment_is_named_and_the_rest_saved(self, tmp_path):
    def fail():
      raise RuntimeError('out of balls')

    experiment = dataclasses.replace(
      _experiment(tmp_path, 'impala', max_steps=10**6),
      # The last of those that are made.
      environment_factory=troubled_environments.Troubled(5, 'step', fail),
    )
    with pytest.raises(launch.NodeError, match='out of balls') as error:
      _run(experiment)
    assert error.value.failure.node.startswith('actor/')
    found = resuming.load_checkpoint(str(tmp_path / 'run'))
    assert found.state['counts']['learner_steps'] > 0

  @pytest.mark.parametrize('method', ['make_update', 'make_learner'])
  def test_learner_that_cannot_be_made_is_named(self, tmp_path, method):
    class Failing(dqn.DQNBuilder):
      pass

    def fail(*arguments):
      raise RuntimeError('nothing to learn')

    setattr(Failing, method, fail)
    experiment = dataclasses.replace(
      _experiment(tmp_path),
      builder=Failing(dqn.DQNConfig(jit_compile=False)),
    )
    with pytest.raises(launch.NodeError, match='nothing to learn') as error:
      _run(experiment)
    assert error.value.failure.node == 'learner'

  def test_failed_learner_ends_the_waits_of_actors(self, tmp_path):
    class Failing(_Noting):
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

  @pytest.mark.chaos
  def test_ctrl_c_saves_and_ends(self, tmp_path):
    running = program.repertory(
      'train',
      '--agent=impala',
      '--topology=sebulba',
      '--num_actors=2',
      '--environments_per_actor=2',
      '--inference_devices=CPU:1',
      '--learner_devices=CPU:0,CPU:2',
      '--config.jit_compile=false',
      f'--steps={10**6}',
      '--directory=run',
      cwd=tmp_path,
    )
    program.wait_for_learning(running, tmp_path / 'run', _SECONDS)
    running.interrupt(signal.SIGINT)
    ended = running.wait(_SECONDS)
    assert ended.code == 128 + signal.SIGINT, ended.output
    assert ended.left == []
    assert (tmp_path / 'run' / 'checkpoints' / '00000001').is_dir()


class TestLocalLearner:
  @pytest.fixture(name='made')
  def _made(self, tmp_path):
    experiment = _experiment(tmp_path, timeout_seconds=0.1)
    with resuming.open_session(experiment, kinds=['local']) as session:
      coordinator = coordinator_lib.Coordinator(
        session, 'a title', 0, pretended_nodes.Clock()
      )
      context = node.Context('actor/0', coordinator, {}, signals.StopSignal())
      yield local_learner.LocalLearner(session, 1), context
      coordinator.close()

  def test_wait_has_a_time_out_that_names_it(self, made, monkeypatch):
    learner, context = made
    monkeypatch.setattr(starts, '_LEAST_SECONDS', 0.0)
    with pytest.raises(TimeoutError, match="node 'learner' to be made"):
      learner.follow(context)

  def test_wait_ends_with_the_run(self, made):
    learner, context = made
    context.coordinator.stop('interrupted')
    with pytest.raises(signals.Stopped):
      learner.follow(context)

  def test_wait_ends_with_the_node(self, made):
    learner, context = made
    context.stop.set()
    with pytest.raises(signals.Stopped):
      learner.make_actor(context, 0, [0])


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
    with pytest.raises(ValueError, match=message):
      _run(_experiment(tmp_path, **settings), **settings_of_sebulba)
    assert not (tmp_path / 'run').exists()

  def test_processes(self, tmp_path):
    with pytest.raises(ValueError, match='launch_type must be local_mt'):
      launch.run(_experiment(tmp_path), 'sebulba', 'local_mp', display=False)

  @pytest.mark.skipif(
    not stacks.HAS_LAUNCHPAD, reason='only Launchpad needs the main thread'
  )
  def test_another_thread_than_the_main_one(self, tmp_path):
    raised = []

    def run():
      try:
        _run(_experiment(tmp_path))
      except ValueError as error:
        raised.append(str(error))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(60)
    assert 'must be used in the main thread' in raised[0]

  def test_a_data_set_of_its_own(self, tmp_path):
    class Own(dqn.DQNBuilder):
      def make_dataset(self, experience, connection):
        return super().make_dataset(experience, connection)

    experiment = dataclasses.replace(_experiment(tmp_path), builder=Own())
    with pytest.raises(ValueError, match='make_dataset of its own'):
      _run(experiment)
    assert not (tmp_path / 'run').exists()
