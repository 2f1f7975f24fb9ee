"""Fake launcher and nodes in simulated time.

Nothing here waits: a sleep advances the clock and runs the events that are due.
The coordinator is the real one.
"""

import contextlib
import heapq
import itertools
import socket
from concurrent import futures

import numpy as np

from repertory.launch import failures
from repertory.launch.coordination import coordinator as coordinator_lib
from repertory.launch.coordination import reports
from repertory.launch.launchers import launcher

# Longer than any of these runs takes.
_END = 20_000.0
_STEPS_PER_BEAT = 4


class Clock:
  """Simulated clock, which sleeping advances, in place of `time`."""

  def __init__(self):
    self.now = 0.0
    self._due = []
    self._order = itertools.count()

  def monotonic(self):
    return self.now

  __call__ = monotonic

  def after(self, seconds, call, *arguments):
    """Schedules an event."""
    due = (self.now + seconds, next(self._order), call, arguments)
    heapq.heappush(self._due, due)

  def sleep(self, seconds):
    end = self.now + seconds
    assert end < _END, 'This run never ends.'
    while self._due and self._due[0][0] <= end:
      self.now, _, call, arguments = heapq.heappop(self._due)
      call(*arguments)
    self.now = end


class Node:
  """Fake node, which starts, reports, makes progress and ends.

  Attributes:
    is_alive: Whether its process runs.
    is_listening: Whether it has started, and answers calls.
    is_silent: Whether it hangs, without heartbeats.
    is_stuck: Whether it reports, but makes no progress.
    is_stubborn: Whether it continues although it should end.
    failure: Its failure, if any.
  """

  def __init__(self, workers, plan):
    self.name = plan.name
    self.kind = plan.kind
    self.is_alive = True
    self.is_listening = False
    self.is_silent = self.is_stuck = self.is_stubborn = False
    self.failure = None
    self._workers = workers
    self._clock = workers.clock
    self._open = self._total = 0
    self._saved_at = None
    self._is_finished = False
    if self.name != 'coordinator':
      seconds = workers.start_seconds.get(self.name, 1.0)
      self._clock.after(seconds, self._start)
    else:
      seconds = workers.start_seconds.get(self.name, 0.5)
      self._clock.after(seconds, self._listen)

  def end(self, code=0, signal=None):
    """Ends the process."""
    if self.is_alive:
      cause = f'code {code}' if signal is None else f'signal {signal}'
      self.failure = failures.Failure(
        self.name, f'It ended with {cause}.', is_lost=signal is not None
      )
      self.is_alive = False

  def report(self, name, doing):
    """Reports the current activity of a starting node."""
    self._workers.coordinator.report_start(name, doing)

  def fail(self, cause='ValueError: no', is_bad_input=False):
    """Fails, and reports the failure before it ends."""
    failure = failures.Failure(self.name, cause, is_bad_input)
    self._workers.coordinator.fail(failure)
    self.end(code=1)

  def _listen(self):
    self.is_listening = True

  def _start(self):
    self._listen()
    if self.is_alive and not self.is_silent:
      self._workers.coordinator.register(self.name, {})
      self._beat()

  def _beat(self):
    if not self.is_alive:
      return
    self._clock.after(reports.PERIOD_SECONDS, self._beat)
    if self.is_silent or not self._workers.can_be_called('coordinator'):
      return  # It waits for an answer.
    phase = getattr(self, f'_report_{self.kind.name}', self._report)()
    if not self.is_stubborn and not self._is_finished:
      self._heed(phase)

  def _report(self):
    coordinator = self._workers.coordinator
    return coordinator.poll(self.name).phase

  def _report_actor(self):
    coordinator, steps = self._workers.coordinator, 0
    if not self.is_stuck:
      steps = min(self._open, _STEPS_PER_BEAT)
    self._open -= steps
    self._total += steps
    report = reports.ActorReport(steps, self._total, [])
    phase = coordinator.report_actor(self.name, report).phase
    if not self.is_stuck:
      self._open = self._open or coordinator.acquire_steps(self.name, 1)
    return phase

  def _report_learner(self):
    if not self.is_stuck and not self._is_finished:
      self._total += 1
    return self._workers.coordinator.report_learner(
      self.name, self._total, {}
    ).phase

  def _report_evaluator(self):
    if not self.is_stuck and self._phase() == reports.EVALUATING:
      self._workers.coordinator.report_evaluation([1.0], [9])
    return self._report()

  def _phase(self):
    return self._workers.coordinator.reply().phase

  def _heed(self, phase):
    """Acts on the coordinator's reply at the end of a phase."""
    if self.kind.phase is None or not self._is_done(phase):
      return
    if self.kind.saves:
      now = self._clock()
      self._saved_at = self._saved_at or now + self._workers.save_seconds
      if now < self._saved_at:
        return
      self._workers.save()
    self._is_finished = True
    self._workers.coordinator.finish(self.name)
    if not self.kind.serves:
      self.end()

  def _is_done(self, phase):
    if phase == reports.STOPPING or self.is_stuck:
      return phase == reports.STOPPING
    if self.kind.name == 'actor':
      return not self._open
    return phase == self.kind.phase


class _Futures:
  """Asynchronous calls of a node."""

  def __init__(self, workers, name):
    self._workers = workers
    self._name = name

  def __getattr__(self, method):
    def call(*arguments):
      called, node = futures.Future(), self._workers.nodes[self._name]
      if not self._workers.can_be_called(self._name) or not node.is_listening:
        return called
      if method == 'shutdown':
        seconds = self._workers.exits.get(self._name)
        if seconds is not None:
          self._workers.clock.after(seconds, node.end)
        elif not node.is_stubborn:
          node.end()
        called.set_result(None)
      else:
        assert self._name == 'coordinator'
        (_, _, token), *arguments = arguments
        assert token == self._workers.program.token
        made = getattr(self._workers.coordinator, method)(*arguments)
        called.set_result(made)
      return called

    return call


class _Client:
  def __init__(self, workers, name):
    self.futures = _Futures(workers, name)
    self._workers = workers
    self._name = name

  @property
  def address(self):
    return self._workers.address_of(self._name)


class Workers(launcher.Workers):
  """The fake nodes of one launch."""

  def __init__(self, program, session, host):
    super().__init__(program, {}, '')
    self.clock = host.clock
    self.start_seconds = host.start_seconds
    self.save_seconds = host.save_seconds
    self.exits = host.exit_seconds
    self.restarted = []
    self.killed = []
    self._can_restart = host.can_restart
    self._session = session
    self._listening = socket.create_server(('localhost', 0))
    max_restarts = session.experiment.max_restarts if self._can_restart else 0
    self.coordinator = coordinator_lib.Coordinator(
      session, max_restarts, self.clock
    )
    self.nodes = {plan.name: Node(self, plan) for plan in program}

  def address_of(self, name):
    if not self.nodes[name].is_listening:
      return 'localhost:1'  # An address without a listener.
    return f'localhost:{self._listening.getsockname()[1]}'

  def can_be_called(self, name):
    node = self.nodes[name]
    return node.is_alive and not node.is_silent

  def save(self):
    """Writes a checkpoint."""
    checkpointer = self._session.make_checkpointer()
    checkpointer.save({'x': np.zeros(1)}, self.coordinator.save())

  def client(self, name):
    return _Client(self, name)

  def is_alive(self, name):
    return self.nodes[name].is_alive

  def failure_of(self, name):
    return self.nodes[name].failure

  def kill(self, name):
    if not self._can_restart:
      return None
    owner = self.program.owner_of(name)
    self.nodes[owner].end(signal=9)
    self.killed.append(owner)
    return owner

  def restart(self, name):
    assert self._can_restart
    assert not self.nodes[name].is_alive
    self.restarted.append(name)
    self.nodes[name] = Node(self, self.program[name])

  def log_of(self, name):
    return f'\nlog of {name}'

  def stacks(self, names):
    return {name: f'stack of {name}\n' for name in names}

  def end(self):
    end = self.clock() + self.exit_seconds
    while self.clock() < end and any(map(self.is_alive, self.names)):
      self.clock.sleep(0.1)
    for name in self.names:
      if self.is_alive(name):
        self.kill(name)
    self.coordinator.close()
    self._listening.close()


class Launcher(launcher.Launcher):
  """Launcher of fake nodes."""

  name, title, help = 'pretended', 'pretended', 'nothing at all'

  def __init__(self):
    self.clock = Clock()
    self.can_restart = True
    self.start_seconds = {}
    self.save_seconds = 2.0
    self.exit_seconds = {}
    self.launches = []
    self.session = None

  @contextlib.contextmanager
  def launch(self, program, log_directory):
    del log_directory
    workers = Workers(program, self.session, self)
    self.launches.append(workers)
    try:
      yield workers
    finally:
      workers.end()
