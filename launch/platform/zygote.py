"""Processes forked from a zygote: a process with their modules imported.

Importing TensorFlow takes several CPU seconds and 300 MB in each process. A
zygote does it once for all processes of a run on a host, and initializes
nothing. Only a process with a single thread and no GPU can be forked safely: if
imports have started threads, as TensorFlow does when it is first used, or
opened a GPU, processes start afresh; so they do on other systems than Linux.
"""

import contextlib
import ctypes
import functools
import gc
import importlib
import os
import pickle
import selectors
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from typing import IO, Any, NamedTuple

from repertory.launch.platform import child_processes, interrupts

_IS_AVAILABLE = sys.platform == 'linux'
_START_SECONDS = 60.0
_POLL_SECONDS = 0.02
_BLOCKED = (*interrupts.TERMINAL_SIGNALS, signal.SIGTERM)
_SET_NAME = 15  # PR_SET_NAME of prctl(2).

_INDEX = struct.Struct('q')  # Of a process, among those of a client.
_STATUS = struct.Struct('qqq')  # Index, process id and exit code.
_RUNNING = 1 << 16  # In place of an exit code.
_GPUS = ('/dev/nvidia', '/dev/kfd', '/dev/dri')
_CREDENTIALS = struct.Struct('3i')  # Process, user and group id.


class _Request(NamedTuple):
  """Request to start a process."""

  name: str
  task: bytes
  paths: Sequence[str]
  environment: dict[str, str]
  directory: str | None  # None for that of the zygote.


class ForkedProcess:
  """Process of a zygote, with methods of `subprocess.Popen`."""

  def __init__(self, zygote: 'Zygote', name: str):
    self._zygote = zygote
    self._name = name
    self._pid: int | None = None
    self._signals: list[int] = []  # Sent before it started.
    self.returncode: int | None = None

  @property
  def pid(self) -> int | None:
    """Its process id; None while the zygote imports its modules."""
    self._zygote.update()
    return self._pid

  def set_status(self, pid: int, code: int) -> None:
    """Sets process id, and exit code if it has ended."""
    self._pid = pid
    if code != _RUNNING:
      self.returncode = code
      return
    for number in self._signals:
      with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)

  def poll(self) -> int | None:
    """Returns the exit code, -n if signal n ended it; None if it runs."""
    self._zygote.update()
    return self.returncode

  def wait(self, timeout: float | None = None) -> int:
    """Waits for the exit code; may raise `subprocess.TimeoutExpired`."""
    seconds = float('inf') if timeout is None else timeout
    deadline = time.monotonic() + seconds
    while (code := self.poll()) is None:
      if time.monotonic() > deadline:
        raise subprocess.TimeoutExpired(self._name, seconds)
      time.sleep(_POLL_SECONDS)
    return code

  def send_signal(self, number: int) -> None:
    """Sends a signal, once the process has started, unless it has ended."""
    if self.poll() is not None:
      return
    with self._zygote.lock, contextlib.suppress(ProcessLookupError):
      if self._pid is None:
        self._signals.append(number)
      else:
        os.kill(self._pid, number)


Process = ForkedProcess | subprocess.Popen


class Zygote:
  """Client of the zygote of a run on this host, which it starts if needed.

  The zygote ends with its last client. Methods may be called concurrently.

  Attributes:
    lock: Guards the connection and the status of processes.
  """

  def __init__(
    self,
    run: str,
    modules: Sequence[str] = (),
    is_shared: bool = False,
  ):
    """Starts nothing yet.

    Args:
      run: Id of the run.
      modules: Names of modules to import besides those of pickled tasks.
      is_shared: Whether several processes may be its clients, so that it
        outlives the one that starts it.
    """
    self._run = run
    self._is_shared = is_shared
    self._modules = modules
    self.lock = threading.Lock()
    self._processes: list[Any] = []
    self._started: subprocess.Popen | None = None
    self._connection: socket.socket | None = None

  @property
  def pid(self) -> int | None:
    """Process id of the zygote; None without one."""
    connection = self._connection
    return None if connection is None else _peer_of(connection)[0]

  def begin(self) -> None:
    """Starts the zygote, if needed, which imports its modules meanwhile."""
    if _IS_AVAILABLE:
      with self.lock:
        self._connect(child_processes.import_paths(), subprocess.DEVNULL)

  def start(
    self,
    name: str,
    task: bytes,
    paths: Sequence[str],
    output: IO[Any],
    directory: str | None = None,
  ) -> Process:
    """Starts a process for a task; see `child_processes.start`."""
    variables = child_processes.variables_of(self._run, paths)
    if not _IS_AVAILABLE:
      process = child_processes.start(name, task, variables, output, directory)
      self._processes.append(process)
      return process
    if directory is None:
      with contextlib.suppress(FileNotFoundError):  # It was deleted.
        directory = os.getcwd()
    environment = {**os.environ, **variables}
    request = _Request(name, task, paths, environment, directory)
    process = ForkedProcess(self, name)
    with child_processes.memory_file() as file, self.lock:
      pickle.dump(request, file)
      file.flush()
      files = [file.fileno(), output.fileno()]
      index = _INDEX.pack(len(self._processes))
      for is_last in (False, True):  # The zygote may have just been killed.
        file.seek(0)
        try:
          socket.send_fds(self._connect(paths, output), [index], files)
          break
        except ConnectionError:
          self._disconnect()
          if is_last:
            raise
      self._processes.append(process)
    return process

  def update(self) -> None:
    """Reads which processes have started and ended."""
    with self.lock, contextlib.suppress(BlockingIOError):
      while self._connection is not None:
        try:
          status = self._connection.recv(_STATUS.size, socket.MSG_DONTWAIT)
        except ConnectionError:
          status = b''
        if not status:
          self._disconnect()
          return
        index, *status = _STATUS.unpack(status)
        self._processes[index].set_status(*status)

  def kill_orphans(self) -> None:
    """Kills processes of the run that no running one has started."""
    running = {p.pid for p in self._processes if p.poll() is None}
    pid = self.pid
    if pid is not None or not self._is_shared:
      child_processes.kill_orphans(self._run, {*running, pid} - {None})

  def close(self) -> None:
    """Ends the processes, and the zygote with its last client."""
    with self.lock:
      self._disconnect()
    if self._started is not None:
      self._started.kill()  # It may be importing.
      self._started.wait(_START_SECONDS)

  def _connect(self, paths: Sequence[str], output: Any) -> socket.socket:
    """Connects to the zygote, or to a new one if it has ended."""
    deadline = time.monotonic() + _START_SECONDS
    while self._connection is None:
      connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
      try:
        connection.connect(_address_of(self._run))
      except ConnectionRefusedError:
        connection.close()
        if time.monotonic() > deadline:
          raise TimeoutError(
            f'Waited {_START_SECONDS:g} seconds for the process from which '
            'those of nodes are forked.'
          ) from None
        if self._started is None or self._started.poll() is not None:
          self._started = self._start_server(paths, output)
        time.sleep(_POLL_SECONDS)
        continue
      if _peer_of(connection)[1] != os.getuid():
        connection.close()
        raise PermissionError('The address of the run is that of another user.')
      self._connection = connection
    return self._connection

  def _start_server(self, paths: Sequence[str], output: Any):
    parent = '' if self._is_shared else str(os.getpid())
    with interrupts.blocked():
      return subprocess.Popen(
        child_processes.command_of(main, parent, *self._modules),
        env={
          **os.environ,
          **child_processes.variables_of(self._run, paths),
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=output,
      )

  def _disconnect(self) -> None:
    """Ends the connection, and with it the processes."""
    if self._connection is not None:
      self._connection.close()
      self._connection = None
    for process in self._processes:
      if isinstance(process, ForkedProcess) and process.returncode is None:
        process.returncode = -signal.SIGKILL


# Zygotes that were started before their runs.
_prepared: list[Zygote] = []


def prepare(modules: Sequence[str]) -> None:
  """Starts the zygote of the next run, with modules to import."""
  if not _prepared:
    zygote = make(modules)
    zygote.begin()
    _prepared.append(zygote)


def make(modules: Sequence[str] = ()) -> Zygote:
  """Makes the zygote of a run on this host, or returns a prepared one."""
  return _prepared.pop() if _prepared else Zygote(uuid.uuid4().hex, modules)


def main() -> None:
  """Runs a zygote, and the task in each process that it forks."""
  # Terminals and time-outs send them to all processes of a group.
  signal.pthread_sigmask(signal.SIG_BLOCK, _BLOCKED)
  _set_name('zygote')
  parent, *modules = sys.argv[1:]
  if parent:
    child_processes.get_signal_at_death(int(parent), signal.SIGKILL)
  else:  # Ray kills the children and the group of a process that ends.
    if os.fork():
      return
    os.setsid()
  try:
    server = _Server(os.environ[child_processes.RUN_VARIABLE])
  except OSError:
    return  # Another one serves the run.
  for module in modules:
    with contextlib.suppress(Exception):  # Processes will fail to import it.
      importlib.import_module(module)
  task = server.serve()
  if task is not None:
    task()


class _Server:
  """Serves the clients of a zygote, in its only thread."""

  def __init__(self, run: str):
    """Raises OSError if the run has a zygote."""
    self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    self._listener.bind(_address_of(run))
    self._listener.listen()
    self._selector = selectors.DefaultSelector()
    self._selector.register(self._listener, selectors.EVENT_READ)
    self._clients: list[socket.socket] = []
    # Client and index of running processes, by their id.
    self._running: dict[int, tuple[socket.socket, int]] = {}
    self._environment = dict(os.environ)

  def serve(self) -> Callable[[], None] | None:
    """Serves to the end of the last client.

    Returns:
      The task, in each process that is forked; None in the zygote, at its end.
    """
    deadline = time.monotonic() + _START_SECONDS
    while self._clients or time.monotonic() < deadline:
      for key, _ in self._selector.select(_POLL_SECONDS):
        if key.fileobj is self._listener:
          if self._accept():
            deadline = 0.0
        elif (task := self._answer(key.fileobj)) is not None:
          return task
      self._reap()
    return None

  def _accept(self) -> bool:
    """Accepts a client, unless it is of another user."""
    connection, _ = self._listener.accept()
    if _peer_of(connection)[1] != os.getuid():
      connection.close()
      return False
    self._selector.register(connection, selectors.EVENT_READ)
    self._clients.append(connection)
    return True

  def _answer(self, client: Any) -> Callable[[], None] | None:
    """Starts a process, in which it returns its task."""
    index, files = b'', []
    with contextlib.suppress(ConnectionError):
      index, files, *_ = socket.recv_fds(client, _INDEX.size, 2)
    if not index:
      self._selector.unregister(client)
      self._clients.remove(client)
      client.close()
      for pid, (owner, _) in self._running.items():
        if owner is client and self._clients:  # Else they end with this one.
          os.kill(pid, signal.SIGKILL)
      return None
    with open(files[0], 'rb') as file:
      request = pickle.load(file)
    # What imports print belongs to the first process that needs them.
    _redirect_output(files[1])
    os.close(files[1])
    self._adopt(request)
    task = _unpickle(request.task)
    sys.stdout.flush()
    sys.stderr.flush()
    gc.freeze()  # Collections would copy its memory.
    parent, (number,) = os.getpid(), _INDEX.unpack(index)
    try:
      pid = os.fork()
    except OSError as error:
      os.write(2, f'{request.name} could not be started: {error}\n'.encode())
      _report(client, number, 0, 1)
      return None
    if pid:
      _redirect_output(0)  # To nowhere.
      self._running[pid] = client, number
      _report(client, number, pid, _RUNNING)
      return None
    for one in (self._listener, *self._clients, self._selector):
      one.close()
    return _set_up(request, task, parent)

  def _adopt(self, request: _Request) -> None:
    """Takes over import paths, environment and working directory.

    Variables that imports have changed stay, unless the client changes them.
    """
    missing = [path for path in request.paths if path not in sys.path]
    sys.path[:0] = missing
    importlib.invalidate_caches()
    before, after = self._environment, request.environment
    for name in before.keys() - after.keys():
      os.environ.pop(name, None)
    for name, value in after.items():
      if before.get(name) != value:
        os.environ[name] = value
    self._environment = after
    if request.directory is not None:
      with contextlib.suppress(OSError):
        os.chdir(request.directory)

  def _reap(self) -> None:
    """Reports which processes have ended."""
    with contextlib.suppress(ChildProcessError):
      while (ended := os.waitpid(-1, os.WNOHANG))[0]:
        pid, status = ended
        if pid in self._running:  # Imports may have started others.
          code = os.waitstatus_to_exitcode(status)
          _report(*self._running.pop(pid), pid, code)


def _report(client: socket.socket, index: int, pid: int, code: int) -> None:
  with contextlib.suppress(OSError):
    client.send(_STATUS.pack(index, pid, code))


def _redirect_output(file: int) -> None:
  for number in (1, 2):
    os.dup2(file, number)


def _unpickle(task: bytes) -> Callable[[], None] | None:
  """Imports what a task needs; returns None if that fails."""
  try:
    return pickle.loads(task)
  except (Exception, SystemExit):
    return None  # The process will fail in the same way.


def _set_up(
  request: _Request, task: Callable[[], None] | None, parent: int
) -> Callable[[], None]:
  """Sets up a forked process; returns its task, or its start afresh."""
  _set_name(request.name)
  signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])
  problem = 'an import failed' if task is None else _find_problem(parent)
  if task is None or problem:
    print(
      f'{request.name} starts afresh, without the modules imported by other '
      f'processes: {problem}.',
      file=sys.stderr,
      flush=True,
    )
    return functools.partial(
      child_processes.start_afresh, request.name, request.task, parent
    )
  sys.argv[1:] = [str(parent), request.name]
  if 'numpy' in sys.modules:  # Otherwise all would draw the same numbers.
    sys.modules['numpy'].random.seed()
  return task


def _set_name(name: str) -> None:
  """Sets the name of this process, of at most 15 bytes."""
  ctypes.CDLL(None).prctl(_SET_NAME, os.fsencode(name)[:15])


def _find_problem(parent: int) -> str:
  """Returns why a fork of a process is unsafe; '' if it is safe."""
  # Threads that libraries end before a fork are gone now.
  if len(os.listdir(f'/proc/{parent}/task')) > 1:
    return 'imports started threads'
  folder = f'/proc/{parent}/fd'
  for number in os.listdir(folder):
    with contextlib.suppress(FileNotFoundError):
      if os.readlink(f'{folder}/{number}').startswith(_GPUS):
        return 'imports opened a GPU'
  return ''


def _address_of(run: str) -> str:
  """Returns an address in memory, which vanishes with its process."""
  return f'\0repertory-{run}'


def _peer_of(connection: socket.socket) -> tuple[int, int]:
  """Returns process and user id of the other end."""
  found = connection.getsockopt(
    socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size
  )
  process, user, _ = _CREDENTIALS.unpack(found)
  return process, user
