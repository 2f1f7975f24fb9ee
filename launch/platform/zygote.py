"""Processes forked from a zygote: one that has imported what they need.

Importing TensorFlow takes several CPU seconds and 300 MB in each process. A
zygote does it once for all processes of a run on a host, and initializes
nothing. Only a process with a single thread can be forked safely: if imports
have started others, as TensorFlow does when it is first used, processes start
afresh instead; so they do on systems without `memfd_create`, which Linux has.
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

from repertory.components.runtime import notices
from repertory.launch.platform import child_processes, interrupts

_IS_AVAILABLE = hasattr(os, 'memfd_create')
_START_SECONDS = 60.0
_POLL_SECONDS = 0.02
_SET_NAME = 15  # PR_SET_NAME of prctl(2).

_INDEX = struct.Struct('q')  # Of a process, among those of a client.
_STATUS = struct.Struct('qqq')  # Index, process id and exit code.
_RUNNING = 1 << 16  # In place of an exit code.
_CREDENTIALS = struct.Struct('3i')  # Process, user and group id.


class _Request(NamedTuple):
  """Start of a process."""

  name: str
  task: bytes
  environment: dict[str, str]
  directory: str


class ForkedProcess:
  """Process of a zygote, with methods of `subprocess.Popen`."""

  def __init__(self, zygote: 'Zygote', name: str):
    self._zygote = zygote
    self._name = name
    self._pid: int | None = None
    self._signals: list[int] = []  # Sent before it began.
    self.returncode: int | None = None

  @property
  def pid(self) -> int:
    """Its process id; that of the zygote while that imports its modules."""
    self._zygote.update()
    return self._pid or self._zygote.pid

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
    """Sends a signal, once the process has begun, unless it has ended."""
    if self.poll() is None:
      if self._pid is None:
        self._signals.append(number)
      else:
        with contextlib.suppress(ProcessLookupError):
          os.kill(self._pid, number)


Process = ForkedProcess | subprocess.Popen


class Zygote:
  """Client of the zygote of a run on this host, which it starts if needed.

  The zygote ends with its last client. Methods may be called concurrently.
  """

  def __init__(
    self,
    run: str,
    paths: Sequence[str],
    modules: Sequence[str] = (),
    is_shared: bool = False,
  ):
    """Starts nothing yet.

    Args:
      run: Id of the run.
      paths: Import paths: it must find the same modules as the launcher.
      modules: Names of modules to import besides those of pickled tasks.
      is_shared: Whether several processes may be its clients, so that it
        outlives the one that starts it.
    """
    self._run = run
    self._arguments = ['' if is_shared else str(os.getpid()), run, *modules]
    self._variables = child_processes.variables_of(run, paths)
    self._lock = threading.Lock()
    self._processes: list[Any] = []
    self._started: subprocess.Popen | None = None
    self._connection: socket.socket | None = None

  @property
  def pid(self) -> int:
    """Process id of the zygote, or 0 without one."""
    if self._connection is None:
      return 0
    return _peer_of(self._connection)[0]

  def begin(self) -> None:
    """Starts the zygote, if needed, which imports its modules meanwhile."""
    if _IS_AVAILABLE:
      with self._lock:
        self._connect()

  def start(
    self, name: str, task: bytes, output: IO[Any], directory: str | None = None
  ) -> Process:
    """Starts a process for a task; see `child_processes.start`."""
    if not _IS_AVAILABLE:
      process = child_processes.start(
        name, task, self._variables, output, directory
      )
      self._processes.append(process)
      return process
    environment = {**os.environ, **self._variables}
    request = _Request(name, task, environment, directory or os.getcwd())
    process = ForkedProcess(self, name)
    with child_processes.memory_file() as file, self._lock:
      pickle.dump(request, file)
      file.seek(0)
      connection = self._connect()
      index = _INDEX.pack(len(self._processes))
      self._processes.append(process)
      files = [file.fileno(), output.fileno()]
      socket.send_fds(connection, [index], files)
    return process

  def update(self) -> None:
    """Reads which processes have begun and ended."""
    with self._lock, contextlib.suppress(BlockingIOError):
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
    child_processes.kill_orphans(self._run, {*running, self.pid})

  def close(self) -> None:
    """Kills its processes, and ends the zygote with its last client."""
    with self._lock:
      self._disconnect()
    if self._started is not None:
      self._started.wait(_START_SECONDS)

  def _connect(self) -> socket.socket:
    """Connects to the zygote, or to a new one if it has ended."""
    deadline = time.monotonic() + _START_SECONDS
    while self._connection is None:
      connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
      try:
        connection.connect(_address_of(self._run))
        self._connection = connection
      except ConnectionRefusedError:
        connection.close()
        if time.monotonic() > deadline:
          raise TimeoutError(
            f'Waited {_START_SECONDS:g} seconds for the process from which '
            'those of nodes are forked.'
          ) from None
        if self._started is None or self._started.poll() is not None:
          self._started = self._start_server()
        time.sleep(_POLL_SECONDS)
    return self._connection

  def _start_server(self) -> subprocess.Popen:
    with interrupts.blocked():
      return subprocess.Popen(
        child_processes.command_of(main, *self._arguments),
        env={**os.environ, **self._variables},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
      )

  def _disconnect(self) -> None:
    if self._connection is not None:
      self._connection.close()
      self._connection = None
    for process in self._processes:
      if isinstance(process, ForkedProcess) and process.returncode is None:
        process.returncode = -signal.SIGKILL


# Zygotes that have begun before their runs.
_prepared: list[Zygote] = []


def prepare(modules: Sequence[str]) -> None:
  """Begins the zygote of the next run, with modules to import."""
  if not _prepared:
    zygote = make(modules)
    zygote.begin()
    _prepared.append(zygote)


def make(modules: Sequence[str] = ()) -> Zygote:
  """Makes the zygote of a run on this host, or returns a prepared one."""
  if _prepared:
    return _prepared.pop()
  paths = child_processes.import_paths()
  return Zygote(uuid.uuid4().hex, paths, modules)


def main() -> None:
  """Runs a zygote, and the task in each process that it forks."""
  parent, run, *modules = sys.argv[1:]
  if parent:
    child_processes.get_signal_at_death(int(parent), signal.SIGKILL)
  elif os.fork():
    return  # Ray kills the children of processes that end.
  notices.drop()
  try:
    server = _Server(run)
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

  def serve(self) -> Callable[[], None] | None:
    """Serves to the end of the last client.

    Returns:
      The task, in each process that is forked; None in the zygote, at its end.
    """
    # Terminals and time-outs send them to all processes of a group.
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    deadline = time.monotonic() + _START_SECONDS
    while self._clients or time.monotonic() < deadline:
      for key, _ in self._selector.select(_POLL_SECONDS):
        if key.fileobj is self._listener:
          self._accept()
          deadline = 0.0
        elif (task := self._answer(key.fileobj)) is not None:
          return task
      self._reap()
    return None

  def _accept(self) -> None:
    connection, _ = self._listener.accept()
    _, user = _peer_of(connection)
    if user == os.getuid():
      self._selector.register(connection, selectors.EVENT_READ)
      self._clients.append(connection)
    else:
      connection.close()

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
    _print_to(files[1])
    os.close(files[1])
    task = _load(request.task)
    sys.stdout.flush()
    sys.stderr.flush()
    gc.freeze()  # Collections would copy its memory.
    parent = os.getpid()
    pid = os.fork()
    if pid:
      _print_to(0)  # Nowhere.
      self._running[pid] = client, *_INDEX.unpack(index)
      self._report(pid, _RUNNING)
      return None
    for one in (self._listener, *self._clients, self._selector):
      one.close()
    return _begin(request, task, parent)

  def _reap(self) -> None:
    """Reports which processes have ended."""
    with contextlib.suppress(ChildProcessError):
      while (ended := os.waitpid(-1, os.WNOHANG))[0]:
        pid, status = ended
        self._report(pid, os.waitstatus_to_exitcode(status))
        del self._running[pid]

  def _report(self, pid: int, code: int) -> None:
    client, index = self._running[pid]
    with contextlib.suppress(OSError):
      client.send(_STATUS.pack(index, pid, code))


def _print_to(file: int) -> None:
  """Redirects the output of this process."""
  for number in (1, 2):
    os.dup2(file, number)


def _load(task: bytes) -> Callable[[], None] | None:
  """Imports what a task needs; returns None if that fails."""
  try:
    return pickle.loads(task)
  except (Exception, SystemExit):
    return None  # The process will fail in the same way.


def _begin(
  request: _Request, task: Callable[[], None] | None, parent: int
) -> Callable[[], None]:
  """Sets up a forked process; returns its task, or starts it afresh."""
  os.environ.clear()
  os.environ.update(request.environment)
  os.chdir(request.directory)
  ctypes.CDLL(None).prctl(_SET_NAME, request.name.encode()[:15])
  signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])
  # Threads that libraries end before a fork are gone now.
  tasks = f'/proc/{parent}/task'
  threads = [thread for thread in os.listdir(tasks) if int(thread) != parent]
  if task is None or threads:
    print(
      f'{request.name} is not forked from a process with imported modules: '
      f'{"imports started threads" if threads else "an import failed"}.',
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
