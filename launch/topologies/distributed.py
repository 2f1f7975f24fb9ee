"""Replay, coordinator, learner, evaluator and actors as a Launchpad program.

The nodes are those of `launch.nodes`; here is only what it takes to run each
in a thread or process of its own: a Courier service or client around it, a
thread that reports, and a way to end.
"""

import contextlib
import threading
import time
from collections.abc import Callable
from typing import Any

import launchpad as lp

from repertory.components import core, loggers, replay, signals
from repertory.launch.coordination import coordinator as coordinator_lib
from repertory.launch.coordination import reports
from repertory.launch.host import interrupts, lifetime
from repertory.launch.launchers import services as services_lib
from repertory.launch.launchers import supervision, workers
from repertory.launch.nodes import evaluation, nodes, pacing
from repertory.launch.runs import session as session_lib

# How long a learner that was stopped waits for the actors' last reports.
_LAST_REPORT_SECONDS = 1.5


def run(
  session: session_lib.Session,
  title: str,
  interruption: interrupts.Interruption,
  show: Callable[[loggers.Status], None],
  launch_type: str,
) -> loggers.Status:
  """Runs an experiment as a program of several nodes.

  Args:
    session: What runs.
    title: What the display calls it.
    interruption: Ends the run early when set; the checkpoint is written.
    show: Takes the status now and then.
    launch_type: 'local_mt' for threads, 'local_mp' for processes.

  Returns:
    The status at the end.

  Raises:
    failures.NodeError: If a node failed; all others have been ended.
  """
  check_thread()
  return supervision.run(
    lambda session: make_program(session, title),
    session,
    title,
    interruption,
    show,
    launch_type,
  )


def make_program(
  session: session_lib.Session, title: str
) -> tuple[lp.Program, supervision.Services]:
  """Wires the nodes.

  Returns:
    The program, and the handles of the nodes that the launcher calls.
  """
  experiment = session.experiment
  program = lp.Program('repertory')
  coordinator, replay_handle = add_base(program, session, title)
  learner = program.add_node(
    lp.CourierNode(
      LearnerService,
      session,
      replay_handle,
      coordinator,
      courier_kwargs=server_settings(session),
    ),
    label='learner',
  )
  program.add_node(
    lp.PyClassNode(EvaluatorService, session, learner, coordinator),
    label='evaluator',
  )
  with program.group('actor'):
    for index in range(experiment.num_actors):
      program.add_node(
        lp.PyClassNode(
          ActorService, session, index, replay_handle, learner, coordinator
        )
      )
  services = supervision.Services(coordinator, replay_handle, learner)
  set_timeouts(session, services)
  return program, services


def check_thread() -> None:
  """Raises ValueError outside the main thread."""
  if threading.current_thread() is not threading.main_thread():
    raise ValueError(
      'topology must be single outside the main thread: Launchpad handles '
      'operating-system signals, which Python allows in the main thread alone.'
    )


def server_settings(session: session_lib.Session) -> dict[str, int]:
  """Returns settings of Courier's servers.

  They hold a thread for every waiting call, and every node may wait in two: its
  own and its report's.
  """
  return {'thread_pool_size': 2 * session.experiment.num_actors + 16}


def add_base(
  program: lp.Program, session: session_lib.Session, title: str
) -> tuple[Any, Any]:
  """Adds coordinator and replay; returns their handles."""
  server = server_settings(session)
  coordinator = program.add_node(
    lp.CourierNode(CoordinatorService, session, title, courier_kwargs=server),
    label='coordinator',
  )
  replay_handle = program.add_node(
    lp.CourierNode(ReplayService, session, coordinator, courier_kwargs=server),
    label='replay',
  )
  return coordinator, replay_handle


def set_timeouts(
  session: session_lib.Session, services: supervision.Services
) -> None:
  """Limits every call between nodes."""
  # The first call may include the start of the one that is called.
  timeout = max(lifetime.START_SECONDS, session.experiment.timeout_seconds)
  for handle in services.handles:
    handle.set_client_kwargs(call_timeout=timeout)


def describe(
  program: lp.Program, services: supervision.Services
) -> tuple[list[str], list[tuple[str, str]]]:
  """Returns a program's nodes, and pairs of who calls whom."""
  owners, callers = {}, []
  for label, members in program.groups.items():
    for index, node in enumerate(members):
      name = f'{label}/{index}' if label in workers.GROUPS else label
      callers.append((name, node))
      owners.update({id(address): name for address in node.addresses})
  calls = [
    (name, owners[id(handle._address)])
    for name, node in callers
    for handle in node.input_handles
  ]
  # The launcher draws the display, and stops the program.
  calls += [
    ('launcher', owners[id(handle._address)])
    for handle in reversed(services.handles)
  ]
  return ['launcher', *(name for name, _ in callers)], calls


class CoordinatorService(services_lib.Service, coordinator_lib.Coordinator):
  """The coordinator, until the launcher shuts it down."""

  def __init__(self, session: session_lib.Session, title: str):
    # Threads cannot be ended, so they are not started again either.
    has_process = lifetime.isolate()
    restarts = session.experiment.max_restarts if has_process else 0
    services_lib.Service.__init__(self)
    coordinator_lib.Coordinator.__init__(self, session, title, restarts)

  def _work(self) -> None:
    # The launcher's watch is the time-out: without it, this process dies too.
    self._shut_down.wait()
    self.close()


class ReplayService(services_lib.Service):
  """The replay server, until the launcher shuts it down."""

  def __init__(self, session: session_lib.Session, coordinator):
    super().__init__()
    lifetime.isolate(coordinator)
    self._coordinator = coordinator
    with lifetime.failures_reported('replay', coordinator):
      self._server = nodes.start_replay(session)
      coordinator.register('replay', {})

  def server_address(self) -> str:
    return f'localhost:{self._server.port}'

  def _work(self) -> None:
    while not self._shut_down.wait(lifetime.REPORT_PERIOD_SECONDS):
      self._coordinator.poll('replay')
    self._server.stop()


class LearnerService(services_lib.Service):
  """The learner; it answers until the launcher shuts it down."""

  def __init__(self, session: session_lib.Session, replay_service, coordinator):
    super().__init__()
    lifetime.isolate(coordinator)
    self._coordinator = coordinator
    self._stop = signals.StopSignal()
    self._phase, self._phase_since = reports.ACTING, time.monotonic()
    with lifetime.failures_reported('learner', coordinator):
      self._node = nodes.LearnerNode(
        session, connect(session, replay_service, self._stop), coordinator
      )

  def get_variables(self, names):
    return self._node.get_variables(names)

  def _work(self) -> None:
    with lifetime.failures_reported('learner', self._coordinator):
      with (
        lifetime.pulse(self._report, self._stop),
        lifetime.closed_at_end(self._node, self._stop),
      ):
        with contextlib.suppress(signals.Stopped):
          self._learn()
        self._wait_for_actors()
        self._node.checkpoint()
      self._coordinator.finish('learner')
    self._shut_down.wait()

  def _learn(self) -> None:
    self._node.wait_for_items()
    while not self._stop.is_set():
      if self._phase == reports.LEARNING and self._node.is_caught_up():
        return
      self._node.step()
      self._node.checkpoint_if_due()

  def _wait_for_actors(self) -> None:
    """Gives actors that were stopped a moment to report their last steps."""
    deadline = time.monotonic() + _LAST_REPORT_SECONDS
    while time.monotonic() < deadline:
      if self._coordinator.have_actors_finished():
        return
      time.sleep(lifetime.REPORT_PERIOD_SECONDS / 5)

  def _report(self) -> reports.Directive:
    directive = self._node.report()
    if directive.phase != self._phase:
      self._phase, self._phase_since = directive.phase, time.monotonic()
    if self._phase == reports.LEARNING:
      # With all actors done, a learner that has caught up would wait for ever.
      if self._node.is_caught_up():
        self._stop.set()
      # And so would one for what was lost, though not before all had time to
      # come that the actors left.
      elif time.monotonic() - self._phase_since > pacing.PATIENCE_SECONDS:
        self._node.expect_batches()
    return directive


class ActorService:
  """An actor, until the steps are used up."""

  def __init__(self, session, index: int, replay_service, learner, coordinator):
    lifetime.isolate(coordinator)
    self._session = session
    self._name = f'actor/{index}'
    per_actor = session.experiment.environments_per_actor
    self._environment_ids = range(index * per_actor, (index + 1) * per_actor)
    self._replay_service = replay_service
    self._learner = learner
    self._coordinator = coordinator

  def run(self) -> None:
    stop = signals.StopSignal()
    with lifetime.failures_reported(self._name, self._coordinator):
      node = nodes.ActorNode(
        self._session,
        self._name,
        self._environment_ids,
        connect(self._session, self._replay_service, stop),
        RemoteSource(
          self._learner, self._session.experiment.timeout_seconds, stop
        ),
        self._coordinator,
      )
      with (
        lifetime.pulse(node.report, stop),
        lifetime.closed_at_end(node, stop),
      ):
        node.run()
      self._coordinator.finish(self._name)


class EvaluatorService:
  """The evaluator, until it has seen the learner's last variables."""

  def __init__(self, session, learner, coordinator):
    lifetime.isolate(coordinator)
    self._session = session
    self._learner = learner
    self._coordinator = coordinator

  def run(self) -> None:
    stop = signals.StopSignal()
    with lifetime.failures_reported('evaluator', self._coordinator):
      source = self._find_source(stop)
      if source is None:
        return  # The run has ended before it began.
      node = evaluation.EvaluatorNode(
        self._session, source, self._coordinator, stop
      )
      with (
        lifetime.pulse(lambda: self._poll(node), stop),
        lifetime.closed_at_end(node, stop),
      ):
        self._evaluate(node, stop)
      self._coordinator.finish('evaluator')

  def _find_source(self, stop: signals.StopSignal) -> Any:
    """Returns where the policy comes from, or who acts."""
    return RemoteSource(
      self._learner, self._session.experiment.timeout_seconds, stop
    )

  def _poll(self, node: evaluation.EvaluatorNode) -> reports.Directive:
    return self._coordinator.poll('evaluator', node.environment_seconds)

  def _evaluate(
    self, node: evaluation.EvaluatorNode, stop: signals.StopSignal
  ) -> None:
    while not stop.wait(lifetime.REPORT_PERIOD_SECONDS):
      directive = self._poll(node)
      is_last = directive.phase == reports.EVALUATING
      if is_last or node.is_due(directive.steps):
        node.evaluate(directive.steps)
      if is_last:
        return


class RemoteSource(core.VariableSource):
  """The learner elsewhere; a call to it ends when the node is stopped."""

  def __init__(self, client, timeout_seconds: float, stop: signals.StopSignal):
    self._client = client
    self._timeout_seconds = timeout_seconds
    self._stop = stop
    self._is_found = False

  def get_variables(self, names):
    if not self._is_found:
      lifetime.wait_for_server(
        self._client, self._timeout_seconds, self._stop.is_set
      )
      self._is_found = True
    call = self._client.futures.get_variables(names)
    return lifetime.result_of(call, self._stop.is_set)


def connect(session, replay_service, stop) -> replay.Connection:
  """Returns a connection to the replay server, wherever it listens."""
  timeout_seconds = session.experiment.timeout_seconds
  lifetime.wait_for_server(replay_service, timeout_seconds, stop.is_set)
  return replay.Connection(
    replay_service.server_address(), timeout_seconds, stop
  )
