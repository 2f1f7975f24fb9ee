"""Supervision of the nodes of a run: restarts, stalls and shutdown."""

import contextlib
import dataclasses
import os
import time
from collections.abc import Callable, Iterator
from typing import Any

from absl import logging

from repertory.components import loggers
from repertory.components.network import callers
from repertory.launch import failures
from repertory.launch.coordination import (
  kinds,
  node_registry,
  reports,
  stall_reports,
)
from repertory.launch.experiments import session as session_lib
from repertory.launch.launchers import calls
from repertory.launch.launchers import launcher as launcher_lib
from repertory.launch.platform import interrupts, printed, watchdog

_COORDINATOR = kinds.COORDINATOR.name

_STATUS_PERIOD_SECONDS = 0.25
_POLL_SECONDS = 0.1
_ANSWER_POLL_SECONDS = 0.01

# Once started, the coordinator replies at once.
_ANSWER_TIMEOUT_SECONDS = 30

# After a stop: minimum time-out of saving a checkpoint, which takes 20 s per GB
# of replay, and time-out of ending.
_SAVE_TIMEOUT_SECONDS = 300
_EXIT_TIMEOUT_SECONDS = 5
# Libraries of a stopped service take seconds to shut down, longer on busy
# cores.
_SERVICE_EXIT_TIMEOUT_SECONDS = 30
# Time-out after a second Ctrl-C.
_HURRIED_SECONDS = 0.2


def run(
  make_program: Callable[[session_lib.Session], launcher_lib.NodeGraph],
  session: session_lib.Session,
  interruption: interrupts.Interruption,
  show: Callable[[loggers.Status], None],
  launcher: launcher_lib.Launcher,
  clock: Any = time,
) -> loggers.Status:
  """Launches a node graph and supervises it to its end; ends all nodes.

  Processes that end too early are restarted where the others can wait for them.
  If the learner, the replay server or the coordinator is lost, all nodes are
  restarted from the last checkpoint.

  Returns the status at the end. Tests simulate the `clock`.
  """
  max_restarts = session.experiment.max_restarts if launcher.can_restart else 0
  budget = node_registry.RestartBudget(max_restarts, clock.monotonic)
  log_directory = os.path.join(session.log_directory, printed.NODES)
  while True:
    doing = 'importing' if launcher.needs_pickles else ''
    watch = _Watch(session, interruption, show, clock, doing)
    try:
      with launcher.launch(make_program(session), log_directory) as workers:
        return watch.run(workers)
    except failures.NodeError as error:
      # A node that raised would raise again, and `_Watch` has restarted
      # replaceable nodes within their own budgets.
      is_replaceable = kinds.kind_of(error.failure.node).is_replaceable
      if is_replaceable or not error.failure.is_lost or not budget.is_left():
        raise
      if interruption.is_set():
        raise
      budget.take()
      resumed = session.restarted(watch.num_restarts + 1, error.failure)
      if resumed is None:  # There is no checkpoint.
        raise
      session = resumed


@dataclasses.dataclass
class _Watch:
  """Supervision of one launch."""

  _session: session_lib.Session
  _interruption: interrupts.Interruption
  _show: Callable[[loggers.Status], None]
  _clock: Any
  _first_doing: str
  _client: Any = None  # Of the coordinator, once it is placed.
  _has_begun: bool = False  # Whether the coordinator has started.
  _is_lost: bool = False  # Whether the coordinator died or hung.
  _last: loggers.Status | None = None  # Set unless the run has failed.

  def __post_init__(self):
    self.num_restarts = self._session.num_restarts
    self._begun_at = self._clock.monotonic()

  def run(self, workers: launcher_lib.Workers) -> loggers.Status:
    """Supervises nodes to the end, and shuts them down."""
    self._workers = workers
    try:
      try:
        with self._hurrying():
          status = self._watch()
          self._raise_failure()
          if self._has_begun:
            self._last = status
      finally:
        with self._hurrying():
          self._end_all_but_coordinator()
          self._end_callbacks()
      self._raise_failure()  # Of a callback, at the end.
      return self._with_last_warnings(status)
    finally:
      self._shut_down(_COORDINATOR)

  @contextlib.contextmanager
  def _hurrying(self) -> Iterator[None]:
    """Kills all nodes at the second Ctrl-C, and shortens waits."""
    try:
      yield
    except KeyboardInterrupt:
      self._workers.is_forced = True
      self._workers.kill_all(self._workers.names)
      raise

  def _watch(self) -> loggers.Status:
    """Supervises nodes and displays the status until the run is over."""
    if not self._start_coordinator():  # Nor has any node anything to save.
      self._workers.kill_all(self._workers.names)
      return self._starting_status()
    self._has_begun = True
    names = [name for name in self._workers.names if name != _COORDINATOR]
    seconds = self._clock.monotonic() - self._begun_at
    self._call('expect', names, self._first_doing, seconds)
    seen = self._call('observe')
    while seen.phase not in (reports.DONE, reports.STOPPING):
      self._show_status(seen.status)
      self.num_restarts = seen.status.num_restarts or 0
      if self._interruption.is_set():
        self._call('stop', 'interrupted')
      else:
        self._report_ended(seen)
        self._end_overdue(seen)
        if (trouble := self._workers.imminent_failure()) is not None:
          self._call('abort', trouble)
        if not seen.overdue:
          self._check_progress(seen)
      self._clock.sleep(_STATUS_PERIOD_SECONDS)
      seen = self._call('observe')
    return self._wait_for_end(seen)

  def _start_coordinator(self) -> bool:
    """Waits until the coordinator accepts calls; returns False if killed.

    It is killed on an interrupt. A thread is waited for nevertheless, since
    only the coordinator can stop the other nodes.
    """

    def is_listening():
      self._show_status(self._starting_status())
      self._clock.sleep(_POLL_SECONDS)
      if self._client is None and self._workers.address_of(_COORDINATOR):
        self._client = calls.AuthenticatedClient(
          self._workers.client(_COORDINATOR),
          callers.Caller('launcher', token=self._workers.program.token),
        )
      return self._client and calls.is_listening(self._client)

    def is_killed():
      return self._interruption.is_set() and self._workers.kill(_COORDINATOR)

    self._wait_for_coordinator(
      lambda: is_killed() or is_listening(), watchdog.START_SECONDS, 'start'
    )
    is_alive = self._workers.is_alive(_COORDINATOR)
    # A killed process may hang in disk I/O.
    return self._client is not None and (
      is_alive or not self._interruption.is_set()
    )

  def _starting_status(self) -> loggers.Status:
    """Returns the status before the coordinator's first report."""
    session, names = self._session, sorted(self._workers.names)
    since = session.elapsed_seconds
    return loggers.Status(
      title=session.title,
      steps=session.counts['steps'],
      max_steps=session.experiment.max_steps,
      episodes=session.counts['episodes'],
      learner_steps=session.counts['learner_steps'],
      elapsed_seconds=since + self._clock.monotonic() - self._begun_at,
      nodes=tuple((name, 'starting') for name in names),
      starts=tuple(
        loggers.NodeStart(name, self._first_doing, since) for name in names
      ),
      num_restarts=session.num_restarts or None,
      message=session.message,
    )

  def _show_status(self, status: loggers.Status) -> None:
    """Displays the status, with what starting nodes are waiting for."""
    waiting = self._workers.waiting()
    self._show(status.with_messages(status.message, waiting))

  def _wait_for_end(self, seen: reports.Observation) -> loggers.Status:
    """Waits for checkpoints, and the end of all nodes except services."""
    since, experiment = self._clock.monotonic(), self._session.experiment
    save_seconds = max(_SAVE_TIMEOUT_SECONDS, 2 * experiment.timeout_seconds)
    while True:
      self._show(seen.status)
      self._report_ended(seen)
      unsaved = self._find_unsaved(seen)
      if self._interruption.is_set():
        starting = {n for n, state in seen.status.nodes if state == 'starting'}
        self._workers.kill_all(
          starting & set(self._workers.names) - set(unsaved)
        )
      if unsaved:
        limit = save_seconds
      elif seen.phase == reports.DONE and not self._interruption.is_set():
        limit = experiment.stall_seconds  # As for steps.
      else:
        limit = _EXIT_TIMEOUT_SECONDS
      is_late = self._clock.monotonic() - since > limit
      if is_late and unsaved:
        cause = f'It did not save a checkpoint within {limit} s.'
        self._call('abort', failures.Failure(unsaved[-1], cause))
      if is_late or not (unsaved or self._workers.clients_alive()):
        return seen.status
      for name in unsaved:
        if not self._workers.is_alive(name):
          self._call('abort', self._workers.failure_of(name))
      self._clock.sleep(_STATUS_PERIOD_SECONDS)
      seen = self._call('observe')

  def _find_unsaved(self, seen: reports.Observation) -> list[str]:
    """Returns nodes that still have to save, each after the nodes it needs."""
    unsaved = []
    for saver in self._workers.program:
      if not saver.kind.saves:
        continue
      needed = [name for name in saver.calls if name != _COORDINATOR]
      # A learner needs its replay server to save; before it has started, there
      # is nothing to save.
      if (
        not {saver.name, *needed} & set(seen.finished)
        and (saver.name, 'starting') not in seen.status.nodes
      ):
        unsaved += [*needed, saver.name]
    return unsaved

  def _report_ended(self, seen: reports.Observation) -> None:
    """Reports ended nodes that had more to do; restarts them if so decided."""
    for name in self._workers.find_ended():
      if name not in seen.finished or self._workers.program[name].kind.serves:
        self._report_end(self._workers.failure_of(name))

  def _end_overdue(self, seen: reports.Observation) -> None:
    """Kills and restarts hanging processes, or ends the run."""
    for name, cause in seen.overdue.items():
      owner = self._workers.kill(name)
      if owner not in (None, name):
        cause = f"'{name}' in its process: {cause}"
      cause += '' if owner is None else ' Its process was killed.'
      self._report_end(failures.Failure(owner or name, cause, is_lost=True))

  def _report_end(self, failure: failures.Failure) -> None:
    if self._call('decide_restart', failure):
      self._workers.restart(failure.node)

  def _check_progress(self, seen: reports.Observation) -> None:
    """Ends a stalled run, with a report."""
    if seen.idle_seconds > self._session.experiment.stall_seconds:
      nodes = self._call('describe_nodes')
      stacks = self._workers.stacks(list(nodes))
      self._call(
        'abort', stall_reports.write(seen, nodes, stacks, self._session)
      )

  def _raise_failure(self) -> None:
    """Raises the run's failure, if any, with the node's last output."""
    if not self._has_begun or self._is_lost:
      return
    failure = self._call('failure')
    if failure is not None:
      details = failure.details + self._workers.log_of(failure.node)
      error = failures.NodeError(dataclasses.replace(failure, details=details))
      error.add_details(self._call('status').not_recorded)
      raise error

  def _end_all_but_coordinator(self) -> None:
    """Ends other nodes before the coordinator, to which they report."""
    workers, now = self._workers, self._clock.monotonic()
    deadline = final = now + (
      _HURRIED_SECONDS if workers.is_forced else _EXIT_TIMEOUT_SECONDS
    )
    if self._last is not None and not workers.is_forced:
      # Services may take longer, unless the run has failed.
      final = now + _SERVICE_EXIT_TIMEOUT_SECONDS
    # Callers before their callees.
    served = [n for n in workers.program.served if n != _COORDINATOR]
    while now <= final:
      while served and self._shut_down(served[-1]):
        served.pop()
      ending = [
        name
        for name in sorted(set(workers.names) - {_COORDINATOR})
        if workers.is_alive(name)
        and (now <= deadline or workers.program[name].kind.serves)
      ]
      if not ending or not workers.is_alive(_COORDINATOR):
        return
      if self._last is not None:
        message = f'{", ".join(ending)}: ending'
        self._show(self._last.with_messages(self._last.message, message))
      self._clock.sleep(_POLL_SECONDS)
      now = self._clock.monotonic()

  def _shut_down(self, name: str) -> bool:
    """Asks a service to end; returns False if it does not listen yet."""
    workers = self._workers
    if not workers.is_alive(name):
      return True
    if not workers.address_of(name):
      return False
    service = workers.client(name)  # Must outlive the call.
    if not calls.is_listening(service):  # Courier retries too slowly.
      return False
    call = service.futures.shutdown()
    deadline = self._clock.monotonic() + (
      _HURRIED_SECONDS if workers.is_forced else 1
    )
    while not call.done() and self._clock.monotonic() < deadline:
      self._clock.sleep(_ANSWER_POLL_SECONDS)
    call.cancel()  # Deleting a client waits for its open calls.
    return True

  def _end_callbacks(self) -> None:
    """Waits until callbacks have ended; they have their own time-out."""
    if not self._has_begun or self._workers.is_forced:
      return
    with contextlib.suppress(failures.NodeError):
      while not self._is_lost and (waiting := self._call('end_callbacks')):
        status = self._call('status')
        self._show(status.with_messages(status.message, waiting))
        self._clock.sleep(_POLL_SECONDS)

  def _with_last_warnings(self, status: loggers.Status) -> loggers.Status:
    """Adds warnings of nodes that failed to close, or are still running."""
    if self._last is not None:
      with contextlib.suppress(failures.NodeError):
        last = self._call('status')
        status = dataclasses.replace(
          status, message=last.message, not_recorded=last.not_recorded
        )
    warnings = [status.message]
    for name in self._workers.names:
      if name != _COORDINATOR and self._workers.is_alive(name):
        cause = 'It did not end when stopped.'
        warnings.append(failures.Failure(name, cause).not_closed)
        logging.warning('%s', warnings[-1])
    return status.with_messages(*warnings)

  def _call(self, method: str, *arguments: Any) -> Any:
    """Calls the coordinator; detects its death and hangs."""
    call = getattr(self._client.futures, method)(*arguments)

    def is_answered():
      if not call.done():
        self._clock.sleep(_ANSWER_POLL_SECONDS)
      return call.done()

    try:
      self._wait_for_coordinator(is_answered, _ANSWER_TIMEOUT_SECONDS, 'answer')
      return call.result()
    finally:
      call.cancel()

  def _wait_for_coordinator(
    self, is_ready: Callable[[], Any], seconds: float, what: str
  ) -> None:
    deadline = self._clock.monotonic() + seconds
    while not is_ready():
      if not self._workers.is_alive(_COORDINATOR):
        failure = self._workers.failure_of(_COORDINATOR)
        details = self._workers.log_of(_COORDINATOR)
        failure = dataclasses.replace(failure, details=details)
      elif self._clock.monotonic() > deadline:
        cause = f'It did not {what} within {seconds:g} seconds.'
        failure = failures.Failure(_COORDINATOR, cause, is_lost=True)
      else:
        continue
      self._is_lost = True
      raise failures.NodeError(failure)
