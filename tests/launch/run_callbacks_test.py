"""Tests of the callbacks, user loggers and stop criterion of a run."""

import dataclasses
import pathlib
import threading
import time
from typing import Any

import cloudpickle
import numpy as np
import pytest

from repertory import launch
from repertory.components.runtime import signals
from repertory.launch.coordination import coordinator as coordinator_lib
from repertory.launch.coordination import reports
from repertory.launch.experiments import callbacks
from repertory.launch.topologies import topology as topology_lib
from support.launch import recording_hooks, sessions

_SECONDS = 30


@pytest.fixture(name='make')
def _make(tmp_path):
  """Makes coordinators whose sessions have callbacks."""
  experiment = launch.make_experiment(
    'dqn', 'catch', max_steps=1000, directory=str(tmp_path / 'run'),
    timeout_seconds=40,
  )  # fmt: skip
  with sessions.open_session(experiment) as session:
    made = []

    def make(timeout_seconds=40.0, **changes):
      hooks = {
        name: changes.pop(name)
        for name in ('callbacks', 'loggers', 'stop_when')
        if name in changes
      }
      limited = dataclasses.replace(
        experiment,
        timeout_seconds=timeout_seconds,
        storage='ftp://me:secret@host/folder',
        **hooks,
      )
      made.append(
        coordinator_lib.Coordinator(
          dataclasses.replace(
            session, experiment=limited, title='a title', **changes
          )
        )
      )
      return made[-1]

    yield make
    for coordinator in made:
      coordinator.close()


def _wait(condition, what):
  deadline = time.monotonic() + _SECONDS
  while not condition():
    assert time.monotonic() < deadline, f'Waited {_SECONDS} s for {what}.'
    time.sleep(0.01)


def _end(coordinator):
  """Ends all callbacks; returns the waiting message."""
  waited = []

  def is_over():
    waited.append(coordinator.end_callbacks())
    return not waited[-1]

  _wait(is_over, 'the end of all hooks')
  return waited


def _report(coordinator, steps, episodes):
  report = reports.ActorReport(steps, steps, episodes)
  coordinator.report_actor('actor/0', report)


class TestObserver:
  def test_receives_all_events_in_order(self, make):
    callback = recording_hooks.Callback()
    coordinator = make(
      callbacks=[callback],
      run_layout={'topology': 'central', 'num_connections': 2},
    )
    _report(coordinator, 30, [(1.0, 9), (-1.0, 4)])
    coordinator.write('learner', {'loss': 0.5, 'count': 3})
    coordinator.write('replay', {'size': 5})
    coordinator.report_learner('learner', 7, {})
    _report(coordinator, 10, [(3.0, 8)])
    coordinator.report_evaluation([1.0, 3.0], [5, 6], {'falls': [2.0, 0.0]})
    assert coordinator.reply().phase == reports.ACTING
    _end(coordinator)
    assert callback.names() == [
      'on_start', 'on_episodes', 'on_learner_row', 'on_episodes',
      'on_evaluation', 'on_end',
    ]  # fmt: skip
    (run,) = callback.all_of('on_start')
    assert (run.title, run.is_resumed) == ('a title', False)
    expected = {
      'agent': 'dqn', 'environment': 'catch', 'max_steps': 1000, 'seed': 0,
      'config.discount': 0.99, 'topology': 'central', 'num_connections': 2,
    }  # fmt: skip
    assert expected == {name: run.settings[name] for name in expected}
    assert 'secret' not in str(run)
    first, second = callback.all_of('on_episodes')
    np.testing.assert_array_equal(first.returns, [1, -1])
    np.testing.assert_array_equal(first.lengths, [9, 4])
    assert (first.num_episodes, first.steps, first.learner_steps) == (2, 30, 0)
    np.testing.assert_array_equal(second.returns, [3])
    assert (second.num_episodes, second.steps) == (3, 40)
    assert second.learner_steps == 7
    (row,) = callback.all_of('on_learner_row')
    assert (row['loss'], row['count'], row['steps']) == (0.5, 3, 30)
    (evaluation,) = callback.all_of('on_evaluation')
    assert evaluation.mean_return == 2
    assert evaluation.is_best
    np.testing.assert_array_equal(evaluation.metrics['falls'], [2, 0])
    assert (evaluation.steps, evaluation.learner_steps) == (40, 7)
    (end,) = callback.all_of('on_end')
    assert (end.outcome, end.reason, end.status.steps) == ('done', '', 40)

  def test_changes_of_an_observer_stay_its_own(self, make):
    class Changing(launch.Callback):
      def on_start(self, run: Any):
        run.settings['seed'] = 'changed'
        run.settings['topology_settings']['num'] = 'changed'

      def on_learner_row(self, row):
        row.clear()

      def on_evaluation(self, evaluation):
        evaluation.metrics.clear()
        evaluation.returns[:] = 0

    callback, logger = recording_hooks.Callback(), recording_hooks.Logger()
    coordinator = make(
      callbacks=[Changing(), callback], loggers=[logger],
      run_layout={'topology_settings': {'num': 2}},
    )  # fmt: skip
    coordinator.write('learner', {'loss': 0.5})
    coordinator.report_evaluation([1.0], [5], {'falls': [2.0]})
    _end(coordinator)
    for run in (*callback.all_of('on_start'), *logger.runs):
      assert run.settings['seed'] == 0
      assert run.settings['topology_settings'] == {'num': 2}
    (row,), (evaluation,) = map(
      callback.all_of, ('on_learner_row', 'on_evaluation')
    )
    assert row['loss'] == 0.5
    assert evaluation.metrics['falls'] == [2]
    assert evaluation.returns == [1]

  def test_episodes_are_joined_while_it_is_busy(self, make):
    stuck = recording_hooks.Stuck('on_start')
    callback = recording_hooks.Callback()
    stuck.on_episodes = callback.on_episodes
    coordinator = make(callbacks=[stuck])
    assert stuck.is_in.wait(_SECONDS)
    for number in range(3):  # The caller does not block.
      _report(coordinator, 10, [(float(number), number)] * 2)
    # Episodes are one event, and the end another.
    assert coordinator.end_callbacks() == (
      'waiting: callbacks[0] (Stuck) is in on_start, with 2 events queued'
    )
    stuck.released.set()
    _end(coordinator)
    (episodes,) = callback.all_of('on_episodes')
    np.testing.assert_array_equal(episodes.returns, [0, 0, 1, 1, 2, 2])
    assert (episodes.num_episodes, episodes.steps) == (6, 30)

  @pytest.mark.parametrize('name', ['on_episodes', 'on_end'])
  def test_one_that_raises_ends_the_run(self, make, name):
    bad = recording_hooks.Callback(fails_at=name)
    good = recording_hooks.Callback()
    coordinator = make(callbacks=[good, bad])
    _report(coordinator, 10, [(1.0, 9)])
    coordinator.report_evaluation([1.0], [9])
    if name != 'on_end':
      _wait(coordinator.failure, 'the failure')
      assert coordinator.reply().phase == reports.STOPPING
    _end(coordinator)
    failure = coordinator.failure()
    assert failure.node == 'coordinator'
    assert failure.cause.startswith('callbacks[1] (Callback) failed:\nTraceb')
    assert failure.summary == 'ValueError: no more'
    assert bad.names()[-1] == name
    (end,) = good.all_of('on_end')
    if name != 'on_end':
      assert (end.outcome, end.reason) == ('failed', 'ValueError: no more')


class TestLogger:
  @pytest.mark.parametrize('name', ['start', 'write', 'close'])
  def test_takes_rows_and_a_warning_if_another_raises(self, make, name):
    bad, good = recording_hooks.Logger(name), recording_hooks.Logger()
    coordinator = make(loggers=[bad, good])
    _report(coordinator, 20, [(1.0, 9), (3.0, 5)])
    coordinator.write('learner', {'loss': 0.5})
    coordinator.report_evaluation([1.0], [9], {'falls': [4.0]})
    coordinator.warn('actor/0', 'not for loggers')
    _end(coordinator)
    assert coordinator.failure() is None
    assert len(good.runs) == 1
    assert good.ends[0].outcome == 'done'
    # Episodes are merged over a second, or till the end.
    labels, rows = zip(*good.rows)
    assert labels == ('learner', 'evaluator', 'actors')
    assert (rows[0]['loss'], rows[1]['falls']) == (0.5, 4.0)
    assert (rows[2]['episode_return'], rows[2]['count']) == (2.0, 2)
    notes = pathlib.Path(coordinator._session.log_directory, 'nodes.jsonl')
    assert f'loggers[0] (Logger): OSError: no network at {name} ' in (
      notes.read_text()
    )
    # It may be back with the next row; but what has not started has no run.
    assert len(bad.rows) == (0 if name == 'start' else 3)
    assert len(bad.ends) == (0 if name == 'start' else 1)

  def test_one_that_hangs_ends_the_run(self, make):
    stuck = recording_hooks.Stuck('on_end')
    bad, good = recording_hooks.Logger(), recording_hooks.Logger()
    bad.start = stuck.on_end
    coordinator = make(loggers=[bad, good], timeout_seconds=0.3)
    assert stuck.is_in.wait(_SECONDS)

    def has_failed():
      coordinator.write('learner', {'loss': 0.5})
      return coordinator.failure()

    _wait(has_failed, 'the failure')
    assert coordinator.failure().cause.startswith(
      'loggers[0] (Logger) failed:\nIt is too slow'
    )
    assert _end(coordinator) == ['']
    assert bad.rows == good.rows == []
    stuck.released.set()


class TestStopWhen:
  def _decide(self, coordinator, episode_return=1.0):
    coordinator.report_evaluation([episode_return], [9])
    coordinator.wait_for_decision(signals.StopSignal())

  @pytest.mark.parametrize(
    ('answer', 'reason'),
    [
      (True, 'stop_when returned true'),
      ('good enough', 'good enough'),
      (False, ''),
    ],
  )
  def test_ends_the_run_with_a_reason(self, make, answer, reason):
    callback = recording_hooks.Callback()
    coordinator = make(callbacks=[callback], stop_when=lambda status: answer)
    self._decide(coordinator)
    assert coordinator.status().stopped_early == reason
    # As if all steps had been taken: actors are done, others continue.
    assert coordinator.reply().phase == reports.ACTING
    assert coordinator.reply().is_ending == bool(reason)
    assert (coordinator.acquire_steps('actor/0', 1) == 0) == bool(reason)
    _end(coordinator)
    (end,) = callback.all_of('on_end')
    outcome = 'stopped early' if reason else 'done'
    assert (end.outcome, end.reason) == (outcome, reason)

  def test_is_asked_with_the_evaluation(self, make):
    coordinator = make(stop_when=callbacks.StopAtReturn(2.5))
    self._decide(coordinator, 2.4)
    assert coordinator.status().stopped_early == ''
    _report(coordinator, 40, ())
    self._decide(coordinator, 2.5)
    assert coordinator.status().stopped_early == (
      'after 40 steps an evaluation had a mean return of 2.5, and 2.5 is enough'
    )

  def test_that_has_ended_the_run_delays_no_evaluation(self, make):
    stuck = recording_hooks.Stuck('on_evaluation')
    coordinator = make(callbacks=[stuck], stop_when=lambda status: True)
    self._decide(coordinator)
    assert stuck.is_in.wait(_SECONDS)
    self._decide(coordinator)
    stuck.released.set()
    assert coordinator.failure() is None

  def test_evaluation_during_a_call_is_decided_by_the_next_one(self, make):
    begun, released = threading.Event(), threading.Event()

    def stop_when(status):
      if status.evaluation_return is None:
        begun.set()
        released.wait(_SECONDS)
      return status.evaluation_return is not None

    coordinator = make(stop_when=stop_when)
    assert begun.wait(_SECONDS)  # The call at the start.
    coordinator.report_evaluation([1.0], [9])
    threading.Timer(0.2, released.set).start()
    coordinator.wait_for_decision(signals.StopSignal())
    assert coordinator.status().stopped_early

  @pytest.mark.parametrize('steps', [0, 40])
  def test_is_asked_without_evaluations_too(self, make, steps):
    """At the start, since the resumed run may already meet the criterion."""
    coordinator = make(stop_when=lambda status: status.steps >= steps)
    coordinator.wait_for_decision(signals.StopSignal())
    assert bool(coordinator.status().stopped_early) == (steps == 0)
    _report(coordinator, 40, ())

    def has_stopped():
      coordinator.write('replay', {'size': 1})  # Asked with these rows.
      return coordinator.status().stopped_early

    _wait(has_stopped, 'the end')
    assert coordinator.acquire_steps('actor/0', 1) == 0

  @pytest.mark.parametrize(
    ('stop_when', 'summary'),
    [
      (lambda status: None, 'TypeError: stop_when must return true or false'),
      (lambda status: status.missing, 'AttributeError: '),
    ],
  )
  def test_one_that_fails_ends_the_run(self, make, stop_when, summary):
    coordinator = make(stop_when=stop_when)
    self._decide(coordinator)
    failure = coordinator.failure()
    assert failure.cause.startswith('stop_when failed:\n')
    assert failure.summary.startswith(summary)

  def test_one_that_does_not_return_is_named(self, make):
    stuck = recording_hooks.Stuck('on_end')
    coordinator = make(stop_when=stuck.on_end, timeout_seconds=0.4)
    self._decide(coordinator)
    assert coordinator.failure().cause == (
      'stop_when failed:\nWaited 0.2 seconds for stop_when to return '
      '(stop_when is in a call, with 1 events queued).'
    )
    stuck.released.set()


@pytest.mark.parametrize('topology', ['distributed', 'central', 'gossip'])
def test_only_the_coordinator_gets_them(tmp_path, topology):
  experiment = launch.make_experiment(
    'dqn', 'catch', max_steps=1000, directory=str(tmp_path), num_actors=4,
    callbacks=[recording_hooks.Callback()],
  )  # fmt: skip
  with sessions.open_session(experiment, topology) as session:
    for node in topology_lib.get(topology)().program(session):
      is_known = b'recording_hooks' in cloudpickle.dumps(node)
      assert is_known == (node.name == 'coordinator'), node.name
