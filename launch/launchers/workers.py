"""The threads or processes of a program, by the names of their nodes."""

import collections
import contextlib
import io
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence

import cloudpickle
import launchpad as lp
import psutil
from launchpad.launch import worker_manager
from launchpad.launch.run_locally import launch_local_output_to_files
from launchpad.nodes.python import local_multi_processing

from repertory.launch import failures
from repertory.launch.coordination import stall_reports
from repertory.launch.host import interrupts, lifetime, printed

_POLL_SECONDS = 0.1
_EXIT_TIMEOUT_SECONDS = 5
# Processes get so long to print their stacks.
_STACKS_SECONDS = 1.0

# Groups of nodes, which are told apart by an index.
GROUPS = ('actor', 'inference')

# Nodes that end when the launcher shuts them down.
_SERVICES = ('coordinator', 'replay', 'learner', 'inference')

_LOG_LINES = 20


class Workers:
  """The threads or processes of a program.

  Launchpad keeps them in a private attribute and offers no other way to learn
  which of them ended.
  """

  def __init__(
    self,
    manager: worker_manager.WorkerManager,
    log_directory: str,
    environment: Mapping[str, str],
  ):
    """Finds out who there is.

    Args:
      manager: Launchpad's.
      log_directory: Of the files to which processes print.
      environment: Variables of the processes besides this one's.
    """
    self._manager = manager
    self._log_directory = log_directory
    self._environment = environment
    self._lives: collections.Counter = collections.Counter()
    self._workers = {
      name: worker
      for label, workers in manager._active_workers.items()
      for name, worker in _named(label, workers)
    }

  @property
  def names(self) -> list[str]:
    """Of all nodes that have a worker."""
    return list(self._workers)

  @property
  def are_processes(self) -> bool:
    """Whether they can be killed, and started again."""
    return any(
      isinstance(worker, subprocess.Popen) for worker in self._workers.values()
    )

  def find_ended(self) -> list[str]:
    """Returns the nodes that have ended, those that all need first."""
    ended = [name for name, w in self._workers.items() if not _is_alive(w)]
    return sorted(ended, key=lambda name: name.split('/')[0] not in _SERVICES)

  def find_killed_service(self) -> str | None:
    """Returns the name of a node that others need and a signal ended."""
    for name in self.find_ended():
      if name.split('/')[0] in _SERVICES and self._signal_of(name):
        return name
    return None

  def is_alive(self, name: str) -> bool:
    return _is_alive(self._workers[name])

  def clients_alive(self) -> list[str]:
    """Returns the nodes that still run and end by themselves."""
    return [
      name
      for name, worker in self._workers.items()
      if name.split('/')[0] not in _SERVICES and _is_alive(worker)
    ]

  def failure_of(self, name: str) -> failures.Failure:
    """Says how a node ended."""
    code = _exit_code(self._workers[name])
    number = self._signal_of(name)
    if number:
      cause = f'Its process ended with signal {number}.'
    elif isinstance(code, BaseException):
      cause = repr(code)
    else:
      cause = f'It ended early, with exit code {code or 0}.'
    return failures.Failure(name, cause, is_lost=number is not None)

  def kill(self, name: str) -> str | None:
    """Kills the process in which a node is.

    Returns:
      The name of the node that this process is of; None if it is no process.
    """
    # Inference servers may be in the learner's.
    owner = name if name in self._workers else 'learner'
    worker = self._workers[owner]
    if not isinstance(worker, subprocess.Popen):
      return None
    _kill_tree(worker)
    return owner

  def restart(self, name: str) -> None:
    """Starts a process that has ended again, at the same address."""
    arguments = self._workers[name].args
    self._lives[name] += 1
    self._kill_strays()
    environment = {
      **os.environ,
      **self._environment,
      lifetime.LIFE_VARIABLE: str(self._lives[name]),
    }
    with open(self._path_of(name), 'a') as file, _blocked_interrupts():
      self._workers[name] = subprocess.Popen(
        arguments, env=environment, stdout=file, stderr=file
      )

  def log_of(self, name: str) -> str:
    """Returns the last lines a node's process printed, and where they are."""
    path = self._path_of(name)
    if not isinstance(self._workers.get(name), subprocess.Popen):
      return ''
    with contextlib.suppress(OSError), open(path, errors='replace') as file:
      lines = ''.join(file.readlines()[-_LOG_LINES:])
      return f'\nEnd of {path}:\n{lines}'
    return ''

  def stacks(self, names: Sequence[str]) -> dict[str, str]:
    """Returns where the threads of nodes are, by node.

    Args:
      names: Of nodes that have registered; others would die of the question.
    """
    if not self.are_processes:
      return {'all nodes, in one process': stall_reports.own_stacks()}
    asked = {}
    for name in names:
      worker = self._workers.get(name)
      if isinstance(worker, subprocess.Popen) and _is_alive(worker):
        asked[name] = os.path.getsize(self._path_of(name))
        worker.send_signal(lifetime.STACKS_SIGNAL)
    time.sleep(_STACKS_SECONDS)
    return {name: self._read(name, start) for name, start in asked.items()}

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
      # The process id of one that has ended may be another's by now.
      if isinstance(worker, subprocess.Popen) and _is_alive(worker):
        _kill_tree(worker)
    if self.are_processes:
      self._kill_strays()
    # Launchpad waits for its workers at exit, and reports their exit codes.
    self._manager._active_workers.clear()
    return [name for name, w in self._workers.items() if _is_alive(w)]

  def _kill_strays(self) -> None:
    """Kills processes that nodes started and left behind."""
    alive = {
      worker.pid
      for worker in self._workers.values()
      if isinstance(worker, subprocess.Popen) and _is_alive(worker)
    }
    mark = self._environment[lifetime.RUN_VARIABLE]
    for process in psutil.process_iter():
      with contextlib.suppress(psutil.Error):
        if process.environ().get(lifetime.RUN_VARIABLE) != mark:
          continue
        family = {process.pid, *(p.pid for p in process.parents())}
        if process.pid != os.getpid() and not family & alive:
          process.kill()

  def _signal_of(self, name: str) -> int | None:
    """Returns the number of the signal that ended a node's process, if any."""
    code = _exit_code(self._workers[name])
    return -code if isinstance(code, int) and code < 0 else None

  def _path_of(self, name: str) -> str:
    return os.path.join(
      self._log_directory, name if '/' in name else f'{name}/0'
    )

  def _read(self, name: str, start: int) -> str:
    with open(self._path_of(name), errors='replace') as file:
      file.seek(start)
      return file.read()


@contextlib.contextmanager
def launched(
  program: lp.Program, launch_type: str, log_directory: str
) -> Iterator[Workers]:
  """Launches a program; at the end all its workers are ended.

  Args:
    program: What to launch.
    launch_type: 'local_mt' or 'local_mp'.
    log_directory: Takes what processes print.

  Raises:
    failures.NodeError: If a thread did not end.
  """
  printed.set_aside(log_directory)
  # What processes are to run. Here the next run finds what a killed one left.
  program_directory = os.path.join(log_directory, '.programs')
  shutil.rmtree(program_directory, ignore_errors=True)
  os.makedirs(program_directory)
  init_file = os.path.join(program_directory, 'init.pkl')
  with open(init_file, 'wb') as file:
    cloudpickle.dump(lifetime.die_with_launcher, file)
  # Launchpad reads this from the environment, but once, when it is imported.
  launch_local_output_to_files._LOGGING_DIR = log_directory
  environment = {
    # Children must find whatever the launching process could import.
    'PYTHONPATH': os.pathsep.join(path for path in sys.path if path),
    lifetime.LAUNCHER_VARIABLE: str(os.getpid()),
    lifetime.RUN_VARIABLE: uuid.uuid4().hex,
  }
  resources = {
    label: local_multi_processing.PythonProcess(
      args={'init_file': init_file}, env=environment
    )
    for label in program.groups
  }
  handlers = interrupts.current_handlers()
  try:
    with (
      contextlib.redirect_stdout(io.StringIO()),
      _temporary_files_in(program_directory),
      _blocked_interrupts(),
    ):
      manager = lp.launch(
        program,
        launch_type=launch_type,
        local_resources=resources,
        terminal='output_to_files',
      )
  finally:
    interrupts.set_handlers(handlers)
  workers = Workers(manager, log_directory, environment)
  hanging = []
  try:
    yield workers
  finally:
    hanging = workers.end()
    shutil.rmtree(program_directory, ignore_errors=True)
  if hanging:
    cause = f'Its thread did not end within {_EXIT_TIMEOUT_SECONDS} s.'
    raise failures.NodeError(failures.Failure(hanging[0], cause))


@contextlib.contextmanager
def _temporary_files_in(directory: str) -> Iterator[None]:
  """Lets temporary files be made in a directory."""
  before = tempfile.tempdir
  tempfile.tempdir = directory
  try:
    yield
  finally:
    tempfile.tempdir = before


@contextlib.contextmanager
def _blocked_interrupts() -> Iterator[None]:
  """Keeps Ctrl-C from processes that are being started.

  It is the launcher's alone. Processes inherit the mask, and ignore the signal
  before they lift it.
  """
  signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
  try:
    yield
  finally:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


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


def _tree(pid: int) -> list[psutil.Process]:
  """Returns a process and all that descend from it, those first."""
  with contextlib.suppress(psutil.NoSuchProcess):
    parent = psutil.Process(pid)
    return [*parent.children(recursive=True), parent]
  return []


def _kill_tree(process: subprocess.Popen) -> None:
  for member in _tree(process.pid):
    with contextlib.suppress(psutil.NoSuchProcess):
      member.kill()
  with contextlib.suppress(subprocess.TimeoutExpired):  # It waits for a disk.
    process.wait(_EXIT_TIMEOUT_SECONDS)
