"""Launches a program, watches over its nodes and ends them all."""

import contextlib
import dataclasses
import io
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent import futures
from typing import Any

import launchpad as lp
import psutil
from launchpad.launch import worker_manager
from launchpad.launch.run_locally import launch_local_output_to_files
from launchpad.nodes.python import local_multi_processing

from repertory.components import loggers
from repertory.launch import failures, interrupts, lifetime, reports
from repertory.launch import session as session_lib

_POLL_SECONDS = 0.1
_STATUS_PERIOD_SECONDS = 0.25

# The coordinator answers at once, except while it starts.
_START_TIMEOUT_SECONDS = 120
_ANSWER_TIMEOUT_SECONDS = 30

# After a stop was asked for: time to save a checkpoint, which takes 20 s for
# each GB of replay, and to go.
_SAVE_TIMEOUT_SECONDS = 300
_EXIT_TIMEOUT_SECONDS = 5
_SHUT_DOWN_TIMEOUT_SECONDS = 1

# Nodes that end when the launcher shuts them down.
_SERVICES = ('coordinator', 'replay', 'learner', 'inference')

# Groups of nodes, which are told apart by an index.
GROUPS = ('actor', 'inference')

_LOG_LINES = 20


@dataclasses.dataclass(frozen=True)
class Services:
  """Handles of the nodes that run until the launcher shuts them down."""

  coordinator: Any
  replay: Any
  learner: Any
  inference: Sequence[Any] = ()

  @property
  def handles(self) -> list[Any]:
    """All of them, in the order in which they are shut down.

    The coordinator is the last, for all others report to it.
    """
    return [*self.inference, self.learner, self.replay, self.coordinator]


def run(
  program: lp.Program,
  services: Services,
  session: session_lib.Session,
  interruption: interrupts.Interruption,
  show: Callable[[loggers.Status], None],
  launch_type: str,
) -> loggers.Status:
  """Launches a program and watches it to its end; nothing is left behind.

  Returns:
    The status at the end.

  Raises:
    failures.NodeError: If a node failed.
  """
  log_directory = os.path.join(session.log_directory, 'nodes')
  with _launched(program, launch_type, log_directory) as workers:
    coordinator = services.coordinator.dereference()
    try:
      return _watch(coordinator, workers, interruption, show)
    finally:
      *others, last = services.handles
      for service in others:
        _shut_down(service.dereference())
      # Who still reports to the coordinator would wait for it in vain.
      workers.wait_for_end(_EXIT_TIMEOUT_SECONDS, but='coordinator')
      _shut_down(last.dereference())


def _watch(coordinator, workers: '_Workers', interruption, show):
  """Shows the status until the run is over."""
  over_since = None
  timeout = _START_TIMEOUT_SECONDS
  while True:
    status, phase, finished = _ask(coordinator, workers, interruption, timeout)
    timeout = _ANSWER_TIMEOUT_SECONDS
    show(status)
    if phase in (reports.DONE, reports.STOPPING):
      over_since = over_since or time.monotonic()
      # A learner without its replay server has nothing to save to.
      is_saved = 'learner' in finished or 'replay' in finished
      limit = _EXIT_TIMEOUT_SECONDS if is_saved else _SAVE_TIMEOUT_SECONDS
      is_late = time.monotonic() - over_since > limit
      if (is_saved and not workers.clients_alive()) or is_late:
        _raise_failure(coordinator, workers)
        if not is_saved:
          raise _error('learner', f'It saved no checkpoint within {limit} s.')
        return status
      dead = None if is_saved else workers.find_dead()
      if dead in ('learner', 'replay'):
        coordinator.fail(failures.Failure(dead, workers.describe(dead)))
    elif interruption.is_set():
      coordinator.stop('interrupted')
    else:
      dead = workers.find_dead()
      if dead:
        # It has told its failure, unless it could not.
        coordinator.fail(failures.Failure(dead, workers.describe(dead)))
    time.sleep(_STATUS_PERIOD_SECONDS)


def _ask(coordinator, workers, interruption, timeout_seconds: float):
  """Asks the coordinator for status, phase and finished nodes."""
  calls = [
    coordinator.futures.status(),
    coordinator.futures.phase(),
    coordinator.futures.finished(),
  ]
  start = time.monotonic()
  interrupted_at = None
  try:
    while not all(call.done() for call in calls):
      futures.wait(calls, timeout=_POLL_SECONDS)
      waited = time.monotonic() - start
      dead = workers.find_dead()
      if dead == 'coordinator':
        raise _error(dead, workers.describe(dead) + workers.log_of(dead))
      if interruption.is_set():
        interrupted_at = interrupted_at or time.monotonic()
        if time.monotonic() - interrupted_at > _ANSWER_TIMEOUT_SECONDS:
          raise _error('coordinator', 'It did not answer when interrupted.')
      if waited > timeout_seconds:
        raise _error(
          'coordinator', f'It did not answer within {timeout_seconds} seconds.'
        )
    return [call.result() for call in calls]
  finally:
    for call in calls:
      call.cancel()


def _raise_failure(coordinator, workers: '_Workers') -> None:
  """Raises what made the run fail, with what that node printed; if it did."""
  failure = coordinator.failure()
  if failure is not None:
    killed = workers.find_killed()
    if killed is not None and killed != failure.node:
      # Who needed it may have noticed before the launcher did.
      cause = f"Thereupon '{failure.node}' failed:\n{failure.cause}"
      cause = f'{workers.describe(killed)}\n{cause}'
      failure = failures.Failure(killed, cause)
    cause = failure.cause + workers.log_of(failure.node)
    raise failures.NodeError(dataclasses.replace(failure, cause=cause))


def _error(node: str, cause: str) -> failures.NodeError:
  return failures.NodeError(failures.Failure(node, cause))


def _shut_down(service) -> None:
  """Asks a service to end; one that cannot is ended with its worker."""
  call = service.futures.shutdown()
  with contextlib.suppress(Exception):
    call.result(timeout=_SHUT_DOWN_TIMEOUT_SECONDS)
  call.cancel()  # A client with an open call waits for it when it is deleted.


class _Workers:
  """The threads or processes of a program, by node name.

  Launchpad keeps them in a private attribute and offers no other way to learn
  which of them ended.
  """

  def __init__(self, manager: worker_manager.WorkerManager, log_directory: str):
    self._manager = manager
    self._log_directory = log_directory
    self._workers = {
      name: worker
      for label, workers in manager._active_workers.items()
      for name, worker in _named(label, workers)
    }

  def find_dead(self) -> str | None:
    """Returns the name of a node that ended with an error, if any."""
    for name, worker in self._workers.items():
      if _exit_code(worker):
        return name
    return None

  def find_killed(self) -> str | None:
    """Returns the name of a node whose process a signal ended, if any."""
    for name, worker in self._workers.items():
      code = _exit_code(worker)
      if isinstance(code, int) and code < 0:
        return name
    return None

  def clients_alive(self) -> list[str]:
    """Returns the nodes that still run and end by themselves."""
    return [
      name
      for name, worker in self._workers.items()
      if name.split('/')[0] not in _SERVICES and _is_alive(worker)
    ]

  def describe(self, name: str) -> str:
    """Says how a node ended."""
    code = _exit_code(self._workers[name])
    if isinstance(code, int):
      how = f'signal {-code}' if code < 0 else f'exit code {code}'
      return f'Its process ended with {how}.'
    return repr(code)

  def log_of(self, name: str) -> str:
    """Returns the last lines a node's process printed, and where they are."""
    path = os.path.join(
      self._log_directory, name if '/' in name else f'{name}/0'
    )
    if not isinstance(self._workers.get(name), subprocess.Popen):
      return ''
    with contextlib.suppress(OSError), open(path, errors='replace') as file:
      lines = ''.join(file.readlines()[-_LOG_LINES:])
      return f'\nEnd of {path}:\n{lines}'
    return ''

  def wait_for_end(self, seconds: float, but: str | None = None) -> None:
    """Waits until all nodes but one have ended, or that one has."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
      alive = {name for name, w in self._workers.items() if _is_alive(w)}
      if not alive or alive == {but} or (but and but not in alive):
        return
      time.sleep(_POLL_SECONDS)

  def end(self) -> list[str]:
    """Waits for all to end and kills what does not; returns whose thread hangs.

    Threads cannot be killed.
    """
    self.wait_for_end(_EXIT_TIMEOUT_SECONDS)
    for worker in self._workers.values():
      if isinstance(worker, subprocess.Popen):
        _kill_tree(worker)
    # Launchpad waits for its workers at exit, and reports their exit codes.
    self._manager._active_workers.clear()
    return [name for name, w in self._workers.items() if _is_alive(w)]


@contextlib.contextmanager
def _launched(
  program: lp.Program, launch_type: str, log_directory: str
) -> Iterator[_Workers]:
  """Launches a program; at the end all its workers are ended."""
  os.makedirs(log_directory, exist_ok=True)
  # Launchpad reads this from the environment, but once, when it is imported.
  launch_local_output_to_files._LOGGING_DIR = log_directory
  # Children must find whatever the launching process could import.
  resources = {
    label: local_multi_processing.PythonProcess(
      env={
        'PYTHONPATH': os.pathsep.join(path for path in sys.path if path),
        lifetime.LAUNCHER_VARIABLE: str(os.getpid()),
      },
    )
    for label in program.groups
  }
  handlers = interrupts.current_handlers()
  # Ctrl-C is the launcher's alone. Processes inherit the mask, and ignore the
  # signal before they lift it.
  signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
  try:
    with contextlib.redirect_stdout(io.StringIO()):
      manager = lp.launch(
        program,
        launch_type=launch_type,
        local_resources=resources,
        terminal='output_to_files',
      )
  finally:
    interrupts.set_handlers(handlers)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
  workers = _Workers(manager, log_directory)
  hanging = []
  try:
    yield workers
  finally:
    hanging = workers.end()
  if hanging:
    raise _error(
      hanging[0], f'Its thread did not end within {_EXIT_TIMEOUT_SECONDS} s.'
    )


def _named(label: str, workers):
  """Pairs workers with the names that the nodes give themselves.

  Launchpad's label is the group for threads and <group>/<index> for processes.
  """
  group = label.split('/')[0]
  if group not in GROUPS:
    return [(group, workers[0])]
  if '/' in label:
    return [(label, workers[0])]
  return [(f'{group}/{index}', w) for index, w in enumerate(workers)]


def _is_alive(worker) -> bool:
  if isinstance(worker, subprocess.Popen):
    return worker.poll() is None
  return worker.thread.is_alive()


def _exit_code(worker):
  """Returns the exit code or exception of a worker; None if there is none."""
  if isinstance(worker, subprocess.Popen):
    return worker.poll()
  return worker.future.exception() if worker.future.done() else None


def _kill_tree(process: subprocess.Popen) -> None:
  with contextlib.suppress(psutil.NoSuchProcess):
    parent = psutil.Process(process.pid)
    for child in [*parent.children(recursive=True), parent]:
      with contextlib.suppress(psutil.NoSuchProcess):
        child.kill()
  process.wait(_EXIT_TIMEOUT_SECONDS)
