"""Tests of supervision of nodes that end, hang, or do not stop.

Nodes and time are simulated, see `pretended_nodes`; chaos tests do the same
with real nodes.
"""

import json
import pathlib

import pytest

from repertory import launch
from repertory.launch.launchers import supervision
from repertory.launch.platform import interrupts, watchdog
from repertory.launch.topologies import central, distributed
from support.launch import pretended_nodes, sessions

_STEPS = 3_000
_SERVERS = central.Central(num_inference_servers=1)


def _raise(error):
  raise error


class _Run:
  """A run of simulated nodes, with scheduled events."""

  def __init__(self, directory):
    self.directory = directory
    self.launcher = pretended_nodes.Launcher()
    self.clock = self.launcher.clock
    self.interruption = interrupts.Interruption()
    self.shown = []

  @property
  def workers(self):
    """Workers of the newest launch."""
    return self.launcher.launches[-1]

  def node(self, name):
    return self.workers.nodes[name]

  def after(self, seconds, name, what, *arguments, **settings):
    """Schedules a call of a node's method, or the setting of an attribute."""

    def happen():
      attribute = getattr(self.node(name), what)
      if callable(attribute):
        attribute(*arguments, **settings)
      else:
        setattr(self.node(name), what, *(arguments or [True]))

    self.clock.after(seconds, happen)

  def kill(self, seconds, name):
    self.after(seconds, name, 'end', signal=9)

  def save(self, seconds):
    self.clock.after(seconds, lambda: self.workers.save())

  def interrupt(self, seconds):
    self.clock.after(seconds, self.interruption.set)

  def run(self, topology=None, **settings):
    """Runs to the end; returns the last status."""
    settings = {'max_steps': _STEPS, 'num_actors': 2, **settings}
    topology = topology or distributed.Distributed()
    experiment = launch.make_experiment(
      'dqn', 'catch', directory=str(self.directory), **settings
    )

    def make_program(session):
      self.launcher.session = session
      return topology.program(session)

    with sessions.open_session(experiment) as session:
      status = supervision.run(
        make_program, session, self.interruption, self.shown.append,
        self.launcher, self.clock,
      )  # fmt: skip
    self.check_nothing_is_left()
    return status

  def fail(self, topology=None, **settings):
    """Runs until it fails; returns the failure."""
    with pytest.raises(launch.NodeError) as caught:
      self.run(topology, **settings)
    return caught.value.failure

  def check_nothing_is_left(self):
    for workers in self.launcher.launches:
      assert not any(node.is_alive for node in workers.nodes.values())

  def notes(self, name):
    """Returns the reasons of the restarts of a node."""
    path = pathlib.Path(self.directory, 'logs', 'nodes.jsonl')
    rows = map(json.loads, path.read_text().splitlines())
    own = [row for row in rows if row['node'] == name]
    return [r['restarted_after'] for r in own if 'restarted_after' in r]

  def num_checkpoints(self):
    return len(list(pathlib.Path(self.directory, 'checkpoints').glob('0*')))


@pytest.fixture(name='run')
def _run(tmp_path):
  return _Run(tmp_path / 'run')


class TestToTheEnd:
  def test_all_do_their_part(self, run):
    status = run.run()
    assert status.steps == _STEPS
    assert status.evaluation_return == 1.0
    assert status.num_restarts is None
    # Who is there for others was shut down, and has no part to be done with.
    states = dict(status.nodes)
    assert states.pop('replay') == 'running'
    assert set(states.values()) == {'done'}
    assert run.workers.killed == []
    # 8 steps in 0.25 s, and what it takes to start, to save and to be seen.
    assert _STEPS / 32 < run.clock.now < _STEPS / 32 + 10
    assert dict(run.shown[0].nodes)['coordinator'] == 'starting'
    assert run.shown[0].max_steps == _STEPS
    # The display is updated all the time.
    assert len(run.shown) > 4 * (_STEPS / 32)

  def test_shows_who_starts_and_for_how_long(self, run):
    run.launcher.start_seconds.update({'coordinator': 3.0, 'learner': 12.0})
    run.after(8, 'coordinator', 'report', 'learner', 'compiling')
    run.run()
    times = [status.elapsed_seconds for status in run.shown]
    assert times == sorted(times)  # Also when the coordinator takes over.
    shown = [
      (start.doing, status.elapsed_seconds - start.since_seconds)
      for status in run.shown
      for start in status.starts
      if start.name == 'learner'
    ]
    importing = [seconds for doing, seconds in shown if doing == 'importing']
    compiling = [seconds for doing, seconds in shown if doing == 'compiling']
    assert len(importing) + len(compiling) == len(shown)
    # Since they were launched, not since somebody knew of them.
    assert importing[0] == 0
    assert 7.5 < importing[-1] <= 8.3
    assert 7.9 <= compiling[0] < 8.6
    assert 11.5 < compiling[-1] <= 12.3

  def test_interrupted_run_saves(self, run):
    run.interrupt(20)
    status = run.run()
    assert 500 < status.steps < 700
    assert status.message == 'interrupted'
    assert run.num_checkpoints() == 1
    assert run.clock.now < 30

  @pytest.mark.parametrize('name', ['coordinator', 'learner'])
  def test_threads_end_as_soon_as_they_can_be_stopped(self, run, name):
    """They cannot be killed, nor called before they are made."""
    run.launcher.can_restart = False
    run.launcher.save_seconds = 0.0
    run.launcher.start_seconds = dict.fromkeys(['learner', 'replay'], 1.2)
    run.launcher.start_seconds['coordinator'] = 0.2
    run.launcher.start_seconds[name] = 3.0
    run.interrupt(0.1 if name == 'coordinator' else 1.0)
    assert run.run().message == 'interrupted'
    # The times after which a wait is given up are 1 and 5 seconds.
    assert run.clock.now < 3 + 1

  def test_second_interrupt_kills_all(self, run):
    """A checkpoint that is being written is lost."""
    run.after(5, 'learner', 'is_stubborn')
    run.interrupt(20)
    run.clock.after(21, lambda: _raise(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
      run.run()
    run.check_nothing_is_left()
    assert 'learner' in run.workers.killed
    assert run.clock.now < 23


class TestRestartOfANode:
  @pytest.mark.parametrize(
    ('topology', 'name'),
    [(None, 'actor/1'), (None, 'evaluator'), (_SERVERS, 'inference/0')],
  )
  def test_killed_one_is_replaced(self, run, topology, name):
    run.kill(20, name)
    status = run.run(topology)
    assert status.steps == _STEPS  # What it had not reported was done again.
    assert status.num_restarts == 1
    assert run.workers.restarted == [name]
    assert len(run.launcher.launches) == 1
    assert run.notes(name) == ['It ended with signal 9.']
    message = f'{name} was started again: It ended with signal 9.'
    assert status.message == message

  def test_its_last_report_is_the_reason(self, run):
    run.after(20, 'actor/1', 'fail', 'Traceback\nBrokenPipeError: no balls')
    status = run.run()
    assert status.num_restarts == 1
    assert run.notes('actor/1') == ['Traceback\nBrokenPipeError: no balls']
    assert status.message.endswith(': BrokenPipeError: no balls')

  def test_so_often_within_the_window(self, run):
    for seconds in (20, 30, 40, 50):
      run.kill(seconds, 'actor/0')
    run.kill(45, 'actor/1')  # Which has its own.
    failure = run.fail(max_restarts=3)
    assert failure.node == 'actor/0'
    assert failure.is_lost
    assert failure.message == 'It ended with signal 9.\nlog of actor/0'
    assert run.workers.restarted == ['actor/0'] * 3 + ['actor/1']
    assert run.num_checkpoints() == 1  # All others ended in good order.

  @pytest.mark.parametrize(('can_restart', 'allowed'), [(True, 0), (False, 3)])
  def test_never_if_not_allowed_or_impossible(self, run, can_restart, allowed):
    run.launcher.can_restart = can_restart
    run.after(20, 'actor/0', 'fail')
    failure = run.fail(max_restarts=allowed)
    assert (failure.node, failure.summary) == ('actor/0', 'log of actor/0')
    assert 'ValueError: no' in failure.cause

  def test_not_before_it_has_registered(self, run):
    run.launcher.start_seconds['actor/1'] = 50.0
    run.kill(20, 'actor/1')
    assert run.fail().node == 'actor/1'
    assert run.clock.now < 30

  def test_not_one_whose_environment_breaks_its_contract(self, run):
    run.after(20, 'actor/1', 'fail', 'no reward', is_bad_input=True)
    failure = run.fail()
    assert failure.node == 'actor/1'
    assert failure.is_bad_input

  def test_one_that_nobody_can_do_without_ends_the_run_if_it_raises(self, run):
    name = 'learner'
    run.save(10)
    run.after(20, name, 'fail', 'ValueError: no')
    failure = run.fail()
    assert failure.node == name
    assert failure.message == f'ValueError: no\nlog of {name}'
    assert len(run.launcher.launches) == 1


class TestRestartOfAll:
  @pytest.mark.parametrize('name', ['learner', 'replay', 'coordinator'])
  def test_resumes_from_the_checkpoint(self, run, name):
    run.save(20)
    run.kill(40, name)
    status = run.run()
    assert status.steps == _STEPS
    assert status.num_restarts == 1
    assert len(run.launcher.launches) == 2
    # The steps of these 20 seconds are done again.
    assert 20 < run.clock.now - _STEPS / 32 < 50
    assert name in status.message
    assert 'all started again from checkpoint 00000001' in status.message
    assert run.notes(name)[0].startswith('It ended with signal 9.')

  def test_not_without_a_checkpoint(self, run):
    name = 'learner'
    run.kill(20, name)
    failure = run.fail()
    assert (failure.node, failure.is_lost) == (name, True)
    assert failure.message == f'It ended with signal 9.\nlog of {name}'
    assert len(run.launcher.launches) == 1

  def test_not_when_the_run_was_interrupted(self, run):
    run.save(10)
    run.interrupt(20)
    run.kill(21, 'learner')
    assert run.fail().node == 'learner'
    assert len(run.launcher.launches) == 1

  def test_who_noticed_first_is_not_to_blame(self, run):
    run.after(20, 'actor/0', 'fail', 'TimeoutError: replay is silent')
    run.kill(20, 'replay')
    failure = run.fail(max_restarts=0)
    assert failure.node == 'replay'
    assert failure.message.splitlines() == [
      'It ended with signal 9.',
      "Then 'actor/0' failed:",
      'TimeoutError: replay is silent',
      'log of replay',
    ]


class TestSilence:
  def test_silent_process_is_killed_and_replaced(self, run):
    name = 'actor/1'
    run.after(20, name, 'is_silent')
    status = run.run(timeout_seconds=90)
    assert status.num_restarts == 1
    assert run.workers.killed == [name]
    (cause,) = run.notes(name)
    assert cause.startswith('It has not reported for 45 seconds.')
    assert cause.endswith('Its process was killed.')

  def test_silent_node_in_another_process(self, run):
    """In `central`, a server in the learner's process is killed with it."""
    run.save(10)
    run.clock.after(
      20, lambda: run.workers.coordinator.register('inference/0', {})
    )
    status = run.run(central.Central(), timeout_seconds=90)
    assert len(run.launcher.launches) == 2
    assert 'learner was lost' in status.message
    (cause,) = run.notes('learner')
    assert cause.startswith("'inference/0' in its process: It has not")

  def test_node_that_never_starts(self, run):
    run.launcher.start_seconds['actor/1'] = 1e6
    failure = run.fail()
    assert failure.node == 'actor/1'
    assert 300 < run.clock.now < 310

  def test_coordinator_that_never_listens(self, run, monkeypatch):
    monkeypatch.setattr(watchdog, 'START_SECONDS', 20.0)
    run.launcher.start_seconds['coordinator'] = 1e6
    failure = run.fail()
    assert failure.node == 'coordinator'
    assert failure.cause == 'It did not start within 20 seconds.'

  def test_coordinator_that_does_not_answer(self, run):
    run.save(10)
    run.after(20, 'coordinator', 'is_silent')
    status = run.run()
    assert len(run.launcher.launches) == 2
    assert status.steps == _STEPS
    assert run.notes('coordinator') == ['It did not answer within 30 seconds.']


class TestStall:
  def test_who_got_on_longest_ago_is_named(self, run):
    for seconds, name in ((20, 'actor/1'), (25, 'actor/0'), (30, 'learner')):
      run.after(seconds, name, 'is_stuck')
    failure = run.fail(stall_seconds=60, timeout_seconds=40)
    assert failure.node == 'actor/1'
    assert not failure.is_lost
    lines = failure.cause.splitlines()
    assert lines[0].startswith('The run has made no progress for 60 seconds')
    progress = 'learner: running; last progress'
    assert any(line.startswith(progress) for line in lines)
    report = (run.directory / 'logs' / 'stall.txt').read_text()
    assert 'Threads of actor/0:\nstack of actor/0' in report
    assert 90 < run.clock.now < 105
    assert run.num_checkpoints() == 1


class TestStopping:
  def test_waits_for_the_checkpoint(self, run):
    run.launcher.save_seconds = 290
    run.interrupt(20)
    assert run.run(timeout_seconds=40).message == 'interrupted'
    assert run.num_checkpoints() == 1
    assert 20 + 290 < run.clock.now < 20 + 300

  def test_but_not_for_ever(self, run):
    run.launcher.save_seconds = 1e6
    run.interrupt(20)
    failure = run.fail(timeout_seconds=40)
    assert failure.node == 'learner'
    assert failure.cause == 'It did not save a checkpoint within 300 s.'

  def test_node_killed_while_it_saves_is_reported(self, run):
    name = 'replay'
    run.launcher.save_seconds = 100.0
    run.interrupt(20)
    run.kill(50, name)
    failure = run.fail()
    assert failure.node == name
    assert failure.cause.startswith('It ended with signal 9.')
    assert run.clock.now < 65

  def test_node_that_does_not_stop_is_killed(self, run):
    run.after(10, 'actor/1', 'is_stubborn')
    run.interrupt(20)
    assert run.run().message == (
      'interrupted; actor/1 could not be closed: It did not end when stopped.'
    )
    assert run.workers.killed == ['actor/1']
    # It has some seconds each time that its end is waited for.
    assert run.clock.now < 20 + 3 * 5 + 5

  def test_service_that_takes_time_to_end_is_waited_for(self, run):
    run.launcher.exit_seconds = {'replay': 12.0, 'learner': 15.0}
    run.interrupt(20)
    assert run.run().message == 'interrupted'
    assert run.workers.killed == []
    assert run.clock.now < 20 + 25
    assert run.shown[-1].message == 'interrupted; learner: ending'
