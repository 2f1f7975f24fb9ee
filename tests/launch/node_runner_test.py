"""Tests of the lifecycle of nodes, with recording nodes and coordinator."""

import contextlib
import os
import threading

import pytest

from repertory.components.runtime import signals
from repertory.launch import failures
from repertory.launch.coordination import reports
from repertory.launch.launchers import calls, node_runner
from repertory.launch.launchers import launcher as launcher_lib
from repertory.launch.nodes import node

_SECONDS = 30


class _Coordinator:
  """Records its calls."""

  def __init__(self):
    self.calls = []
    self.phase = reports.ACTING
    self.num_polls = 0

  def register(self, name, description):
    self.calls.append(('register', name, description))

  def report_start(self, name, doing):
    self.doing = (name, doing)

  def finish(self, name):
    self.calls.append(('finish', name))

  def fail(self, failure):
    self.calls.append(('fail', failure.node, failure.summary))

  def abort(self, failure):
    self.calls.append(('abort', failure.node, failure.summary))

  def warn(self, name, message):
    self.calls.append(('warn', name, message))

  def poll(self, name):
    self.num_polls += 1
    return reports.HeartbeatReply(self.phase, 0)


class _Node(node.Node):
  """Waits until it is stopped, by default."""

  def __init__(self, context, *, ends=False, error=None, close_error=None):
    self.name = context.name
    self.context = context
    self._ends = ends
    self._error = error
    self._close_error = close_error
    self.is_closed = False
    context.closing.callback(self._close)
    self.running = threading.Event()

  @property
  def description(self):
    return {'generation': self.context.generation}

  @property
  def served(self):
    return {'answer': lambda: 42}

  def run(self):
    self.running.set()
    if self._error is not None:
      raise self._error
    if not self._ends and not self.context.stop.wait(_SECONDS):
      raise AssertionError('It was never stopped.')
    if not self._ends:
      raise signals.Stopped

  def report(self):
    return self.context.coordinator.poll(self.name)

  def _close(self):
    self.is_closed = True
    if self._close_error is not None:
      raise self._close_error


@pytest.fixture(name='coordinator')
def _coordinator(monkeypatch):
  monkeypatch.setattr(calls, 'wait_for_server', lambda client, stop: None)
  return _Coordinator()


class _Hosted:
  """A node and its runner in a thread."""

  def __init__(self, name, coordinator, beside=(), **settings):
    self.nodes = []
    self.served = []
    self.error = None

    def make(context):
      made = _Node(context, **settings)
      self.nodes.append(made)
      return made

    plan = launcher_lib.PlannedNode(name, make, ['coordinator'], beside)
    self.host = node_runner.NodeRunner(
      plan, {'coordinator': coordinator}, generation=2
    )
    self._thread = threading.Thread(target=self._run)
    self._thread.start()

  def _run(self):
    try:
      self.host.run(self._serve)
    except BaseException as error:
      self.error = error

  @contextlib.contextmanager
  def _serve(self, served):
    self.served.append(served['answer']())
    yield
    self.served.append('ended')

  def join(self):
    self._thread.join(_SECONDS)
    assert not self._thread.is_alive()
    return self


def test_client_ends_when_its_part_is_done(coordinator):
  hosted = _Hosted('actor/3', coordinator, ends=True).join()
  assert coordinator.calls == [
    ('register', 'actor/3', {'pid': os.getpid(), 'generation': 2}),
    ('finish', 'actor/3'),
  ]
  assert hosted.nodes[0].is_closed
  assert hosted.error is None
  assert coordinator.num_polls >= 1  # Once at its end.


def test_service_answers_until_it_is_shut_down(coordinator):
  hosted = _Hosted('learner', coordinator, ends=True)
  while ('finish', 'learner') not in coordinator.calls:
    assert hosted.error is None
  assert hosted.served == [42]
  hosted.host.shut_down()
  hosted.join()
  assert hosted.served == [42, 'ended']


def test_run_that_stops_ends_those_with_a_part(coordinator):
  coordinator.phase = reports.STOPPING
  hosted = _Hosted('actor/0', coordinator).join()
  assert hosted.error is None
  assert coordinator.calls[-1] == ('finish', 'actor/0')


def test_run_that_stops_does_not_end_who_is_there_for_others(coordinator):
  coordinator.phase = reports.STOPPING
  hosted = _Hosted('inference/0', coordinator)
  while coordinator.num_polls < 3:
    assert hosted.error is None
  assert not hosted.nodes[0].context.stop.is_set()
  hosted.host.shut_down()
  hosted.join()
  assert hosted.error is None
  described = {'pid': os.getpid(), 'generation': 2}
  assert coordinator.calls == [('register', 'inference/0', described)]


@pytest.mark.parametrize('error', [ValueError('no'), SystemExit(0)])
def test_failure_is_reported_once(coordinator, error):
  hosted = _Hosted('actor/0', coordinator, error=error).join()
  assert hosted.error is error
  assert hosted.nodes[0].is_closed
  assert hosted.nodes[0].context.stop.is_set()
  reports = [call for call in coordinator.calls if call[0] == 'fail']
  assert len(reports) == 1
  assert type(error).__name__ in reports[0][2]
  assert ('finish', 'actor/0') not in coordinator.calls


def test_failing_close_is_a_warning(coordinator):
  error = OSError('stuck')
  hosted = _Hosted('actor/0', coordinator, ends=True, close_error=error).join()
  assert hosted.error is None
  warning = f'actor/0 could not be closed: {type(error).__name__}: {error}'
  assert coordinator.calls[1:] == [
    ('finish', 'actor/0'),
    ('warn', 'actor/0', warning),
  ]


def test_heartbeat_that_fails_ends_the_node(coordinator, monkeypatch):
  def poll(name):
    raise TimeoutError('no answer')

  monkeypatch.setattr(coordinator, 'poll', poll)
  hosted = _Hosted('actor/0', coordinator).join()
  assert isinstance(hosted.error, TimeoutError)
  assert hosted.host.has_reported
  assert hosted.nodes[0].is_closed
  assert coordinator.calls[1:] == [
    ('fail', 'actor/0', 'TimeoutError: no answer')
  ]


def test_colocated_node_lives_as_long_and_ends_the_run(coordinator):
  made = []

  def make(context):
    made.append(_Node(context))
    return made[0]

  beside = [launcher_lib.PlannedNode('inference/0', make, ['coordinator'])]
  hosted = _Hosted('learner', coordinator, beside, ends=True)
  while not made or not made[0].running.wait(0.1):
    assert hosted.error is None
  while ('finish', 'learner') not in coordinator.calls:
    assert hosted.error is None
  assert made[0].context.beside is hosted.nodes[0]
  assert not made[0].is_closed  # Others may still need it.
  hosted.host.shut_down()
  hosted.join()
  assert made[0].is_closed


def test_what_was_made_of_a_node_that_fails_in_it_is_ended(coordinator):
  contexts = []

  def make(context):
    contexts.append(context)
    raise OSError('no screen')

  plan = launcher_lib.PlannedNode('actor/0', make, ['coordinator'])
  with pytest.raises(OSError, match='no screen'):
    node_runner.NodeRunner(plan, {'coordinator': coordinator}).run(None)
  assert contexts[0].stop.is_set()
  assert [name for name, *_ in coordinator.calls] == ['fail']


def test_colocated_node_that_fails_is_reported_once_by_its_name(coordinator):
  def make(context):
    raise OSError('no device')

  beside = [launcher_lib.PlannedNode('inference/0', make, ['coordinator'])]
  hosted = _Hosted('learner', coordinator, beside).join()
  assert isinstance(hosted.error, failures.NodeError)
  assert hosted.nodes[0].is_closed
  assert coordinator.calls[1:] == [
    ('fail', 'inference/0', 'OSError: no device')
  ]
