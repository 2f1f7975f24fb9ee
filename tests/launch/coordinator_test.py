"""Tests of the coordinator, its step budget and node registry."""

import json
import pathlib

import pytest

from repertory import launch
from repertory.launch import failures
from repertory.launch.coordination import coordinator as coordinator_lib
from repertory.launch.coordination import node_registry, reports
from support.launch import pretended_nodes, sessions


@pytest.fixture(name='clock')
def _clock():
  return pretended_nodes.Clock()


@pytest.fixture(name='session')
def _session(tmp_path):
  experiment = launch.make_experiment(
    'dqn', 'catch', max_steps=1000, directory=str(tmp_path / 'run'),
    stall_seconds=50, timeout_seconds=40,
  )  # fmt: skip
  with sessions.open_session(experiment) as session:
    yield session


@pytest.fixture(name='coordinator')
def _coordinator(session, clock):
  made = coordinator_lib.Coordinator(session, 1, clock)
  yield made
  made.close()


def _report(coordinator, steps, **settings):
  report = reports.ActorReport(steps, steps, settings.pop('episodes', ()))
  return coordinator.report_actor(settings.pop('node', 'actor/0'), report)


class TestPhases:
  @pytest.mark.parametrize(
    ('others', 'finished', 'phases'),
    [
      (
        ['replay', 'learner', 'evaluator'],
        ['actor/1', 'actor/0', 'learner', 'evaluator'],
        ['acting', 'acting', 'learning', 'evaluating', 'done'],
      ),
      # The learner need not wait for targets not computed by then. And phases
      # without nodes are skipped.
      (
        ['learner', 'bellman_updater/0'],
        ['actor/0', 'actor/1', 'bellman_updater/0', 'learner'],
        ['acting', 'acting', 'labeling', 'learning', 'done'],
      ),
    ],
  )
  def test_follow_each_other_as_nodes_finish(
    self, coordinator, others, finished, phases
  ):
    coordinator.expect([*others, 'actor/0', 'actor/1'])
    seen = [coordinator.reply().phase]
    for name in finished:
      coordinator.finish(name)
      seen.append(coordinator.reply().phase)
    assert seen == phases

  def test_a_run_that_is_done_cannot_be_stopped(self, coordinator):
    coordinator.expect(['actor/0'])
    coordinator.finish('actor/0')
    coordinator.stop('interrupted')
    assert coordinator.reply().phase == reports.DONE
    assert coordinator.status().message == ''


class TestFailures:
  def test_the_first_one_is_reported(self, coordinator):
    first, second = (failures.Failure(n, n) for n in ('learner', 'replay'))
    coordinator.fail(first)
    coordinator.abort(second)
    assert coordinator.failure() == first
    assert coordinator.status().message == 'learner failed'
    assert coordinator.reply().phase == reports.STOPPING

  def test_no_node_is_restarted_when_the_run_stops(self, coordinator):
    coordinator.expect(['actor/0', 'actor/1'])
    coordinator.register('actor/0', {})
    coordinator.stop('interrupted')
    assert not coordinator.decide_restart(failures.Failure('actor/0', 'killed'))
    assert coordinator.failure() is None


class TestObservation:
  def test_idle_since_the_latest_progress(self, coordinator, clock):
    coordinator.expect(['actor/0', 'learner'])
    clock.sleep(30)
    assert coordinator.observe().idle_seconds == 0  # They still start.
    coordinator.register('actor/0', {})
    coordinator.register('learner', {})
    clock.sleep(10)
    assert coordinator.observe().idle_seconds == 10
    for go_on in (
      lambda: _report(coordinator, 3),
      lambda: coordinator.report_learner('learner', 5, {}),
      lambda: coordinator.report_evaluation([1.0], [9]),
    ):
      go_on()
      assert coordinator.observe().idle_seconds == 0
      clock.sleep(7)
      _report(coordinator, 0)
      steps = coordinator.status().learner_steps
      coordinator.report_learner('learner', steps, {})
      coordinator.poll('actor/0')
      assert coordinator.observe().idle_seconds == 7
    coordinator.finish('actor/0')
    assert coordinator.observe().idle_seconds == 0  # The learner ends alone.


class TestStatus:
  def test_time_left_is_estimated_once_learning_is_steady(
    self, coordinator, clock
  ):
    coordinator.status()
    left = []

    def go_on(steps, learner_steps):
      clock.sleep(1)
      _report(coordinator, steps)
      coordinator.report_learner('learner', learner_steps, {})
      left.append(coordinator.status().seconds_left)

    for _ in range(8):  # The learner is compiled, and acting is fast.
      go_on(40, 0)
    for learner_steps in range(1, 13):
      go_on(10, learner_steps)
    # From the first update on, 10 s of 10 steps each.
    assert left[:18] == [None] * 18
    assert left[18] == pytest.approx((1000 - 320 - 110) / 10)
    for _ in range(12):
      go_on(0, 12)
    assert left[-1] is None  # No progress.
    go_on(30, 13)
    # 30 steps within the last ten seconds.
    assert left[-1] == pytest.approx((1000 - 440 - 30) / (30 / 10))
    coordinator.stop_early('enough')
    go_on(10, 10)
    assert left[-1] is None

  def test_return_is_that_of_the_last_episodes(self, coordinator):
    _report(coordinator, 10, episodes=[(100.0, 5)] * 50)
    _report(coordinator, 10, episodes=[(float(i), 5) for i in range(100)])
    status = coordinator.status()
    assert status.episodes == 150
    assert status.mean_return == pytest.approx(99 / 2)
    assert status.num_returns == 100

  def test_age_of_variables(self, coordinator):
    coordinator.report_learner('learner', 10, {})
    for node, version, age in (('a', 4, 1.0), ('b', 8, 2.0), ('c', 12, 3.0)):
      coordinator.report_actor(
        f'actor/{node}',
        reports.ActorReport(0, 0, [], version=version, age_seconds=age),
      )
    status = coordinator.status()
    # 12 is newer than the learner's latest report.
    assert status.variables_age_steps == pytest.approx((6 + 2 + 0) / 3)
    assert status.variables_age_seconds == pytest.approx(2)

  def test_targets(self, coordinator):
    row = {'targets': 80, 'targets_per_second': 30.0, 'version': 4}
    coordinator.report_row('bellman_updaters', 'bellman_updater/0', row)
    row = {**row, 'targets_per_second': 12.5}
    coordinator.report_row('bellman_updaters', 'bellman_updater/1', row)
    coordinator.write('learner', {'target_age': 7.5})
    coordinator.write('replay', {'size': 3})
    status = coordinator.status()
    assert (status.targets_per_second, status.target_age_steps) == (42.5, 7.5)


def test_resumes_the_counts_of_the_checkpoint(coordinator, session, clock):
  _report(coordinator, 30, episodes=[(1.0, 9)])
  coordinator.report_learner('learner', 4, {})
  clock.sleep(8)
  saved = coordinator.save()
  assert saved['counts'] == {
    'steps': 30, 'episodes': 1, 'learner_steps': 4, 'runs': 1
  }  # fmt: skip
  assert saved['elapsed_seconds'] == 8
  checkpointer = session.make_checkpointer()
  checkpointer.save({}, saved)
  failure = failures.Failure('learner', 'killed', is_lost=True)
  resumed = session.restarted(1, failure)
  again = coordinator_lib.Coordinator(resumed, 1, clock)
  clock.sleep(2)
  assert again.save()['counts']['runs'] == 2
  assert again.status().steps == 30
  assert again.status().elapsed_seconds == 10
  assert again.status().num_restarts == 1
  again.close()
  path = pathlib.Path(session.log_directory, 'nodes.jsonl')
  (row,) = map(json.loads, path.read_text().splitlines())
  assert row == {'node': 'learner', 'run': 1, 'restarted_after': 'killed'}


class TestStepBudget:
  def test_grants_at_least_the_wanted_steps(self):
    steps = coordinator_lib.StepBudget(max_steps=10, num_actors=4)
    assert steps.acquire('actor/0', 8, 0) == 8
    assert steps.acquire('actor/1', 8, 0) == 8  # Two are left: one batch more.
    assert steps.acquire('actor/0', 8, 0) == 0

  def test_grants_get_smaller_towards_the_end(self):
    steps = coordinator_lib.StepBudget(max_steps=1600, num_actors=4)
    assert steps.acquire('actor/0', 1, 0) == 1600 // 16
    assert steps.acquire('actor/1', 1, 0) == 1500 // 16
    # And no grant exceeds the maximum.
    assert coordinator_lib.StepBudget(10**6, 1).acquire('actor/0', 1, 0) == 1000

  def test_takes_back_unused_steps(self):
    steps = coordinator_lib.StepBudget(max_steps=10, num_actors=1)
    assert steps.acquire('actor/0', 10, 0) == 10
    steps.use('actor/0', 4)
    assert steps.acquire('actor/1', 1, 0) == 1
    assert steps.acquire('actor/1', 3, 0) == 3
    assert steps.acquire('actor/1', 1, 0) == 0

  def test_unreported_steps_of_a_lost_actor_are_free(self):
    steps = coordinator_lib.StepBudget(max_steps=10, num_actors=1)
    assert steps.acquire('actor/0', 10, 0) == 10
    steps.use('actor/0', 4)
    assert steps.acquire('actor/1', 1, 4) == 0
    steps.drop('actor/0')
    assert steps.acquire('actor/1', 6, 4) == 6
    assert steps.acquire('actor/1', 1, 4) == 0


@pytest.fixture(name='nodes')
def _nodes():
  return node_registry.NodeRegistry(max_restarts=2)


def test_hanging_environment_is_overdue(nodes):
  nodes.register('actor/0')
  nodes.hear('actor/0', 10, environment_seconds=99)
  assert not nodes.find_overdue(30, 100)
  nodes.hear('actor/0', 10, environment_seconds=101)
  assert '101 seconds' in nodes.find_overdue(30, 100)['actor/0']
  # The time is that of the previous generation.
  nodes.mark_restarted('actor/0')
  assert not nodes.find_overdue(30, 100)


def test_acting_is_delayed_while_actors_start(nodes):
  nodes.expect(['actor/0', 'learner', 'evaluator'])
  nodes.register('learner')
  assert nodes.is_acting_delayed()
  nodes.register('actor/0')
  assert not nodes.is_acting_delayed()
  nodes.mark_restarted('actor/0')
  assert nodes.is_acting_delayed()
  nodes.finish('actor/0')
  assert not nodes.is_acting_delayed()
