"""Processes forked from a zygote: a process with their modules imported.

Importing TensorFlow takes several CPU seconds and 300 MB in each process. A
zygote does it once for all processes of a run on a host, and initializes
nothing. Only a process with a single thread and no GPU can be forked safely: if
imports have started threads, as TensorFlow does when it is first used, or
opened a GPU, processes start afresh; so they do on other systems than Linux.

A client has a connection for each process. It requests the process with its
first message, and then sends signals for it. The zygote replies with the id of
the process, and at its end with the exit code.
"""

import contextlib
import gc
import importlib
import os
import pickle
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from multiprocessing import connection as connections
from typing import IO, Any

from repertory.launch.platform import child_processes, interrupts

_IS_AVAILABLE = sys.platform == 'linux'
_POLL_SECONDS = 0.02
_END_SECONDS = 60.0
_BLOCKED = (*interrupts.TERMINAL_SIGNALS, signal.SIGTERM)
_GPUS = ('/dev/nvidia', '/dev/kfd', '/dev/dri')
_CREDENTIALS = struct.Struct('3i')  # Process, user and group id.


class ForkedProcess:
  """Process of a zygote, with methods of `subprocess.Popen`.

  Methods may be called concurrently.
  """

  def __init__(self, name: str, connection: connections.Connection):
    self._name = name
    self._connection = connection
    self._lock = threading.Lock()  # Guards reading from the connection.
    self._zygote: int | None = None
    self._pid: int | None = None
    self.returncode: int | None = None

  @property
  def pid(self) -> int | None:
    """Its process id; None while the zygote imports its modules."""
    self.poll()
    return self._pid

  @property
  def zygote(self) -> int | None:
    """Process id of its zygote; None before the start, and without one."""
    self.poll()
    with self._lock:
      has_ended = self._connection.closed or self._connection.poll()
    return None if has_ended else self._zygote

  def poll(self) -> int | None:
    """Returns the exit code, -n if signal n ended it; None if it runs."""
    with self._lock:
      while self.returncode is None and self._connection.poll():
        try:
          self._zygote, self._pid, self.returncode = self._connection.recv()
        except (EOFError, ConnectionError):
          self.returncode = -signal.SIGKILL  # It ends with the zygote.
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
    with self._lock, contextlib.suppress(OSError):  # It has just ended.
      if self._pid is not None:
        os.kill(self._pid, number)
        return
      self._connection.send(number)
      if number == signal.SIGKILL:
        self.returncode = -number  # It will end at its start.

  def close(self) -> None:
    """Ends the connection, and so the process of a shared zygote."""
    with self._lock:
      self._connection.close()
      if self.returncode is None:
        self.returncode = -signal.SIGKILL


Process = ForkedProcess | subprocess.Popen


class Zygote:
  """Client of the zygote of a run on this host, which it starts if needed."""

  def __init__(self, run: str, is_shared: bool = False):
    """Starts nothing yet.

    Args:
      run: Id of the run.
      is_shared: Whether several processes may be its clients, so that it
        outlives the one that starts it, and ends with the last.
    """
    self._run = run
    self._address = f'\0repertory-{run}'  # It vanishes with its process.
    self._is_shared = is_shared
    self._processes: list[Any] = []  # Those that ran at the last start.
    self._started: subprocess.Popen | None = None

  @property
  def pid(self) -> int | None:
    """Process id of the zygote; None before its start, and after its end."""
    if self._is_shared:
      return getattr([None, *self._processes][-1], 'zygote', None)
    started = self._started
    return started.pid if started and started.poll() is None else None

  def begin(
    self, modules: Sequence[str] = (), output: Any = subprocess.DEVNULL
  ) -> None:
    """Starts the zygote, if needed, which imports modules meanwhile.

    Later, it imports the modules of pickled tasks.
    """
    if not _IS_AVAILABLE:
      return
    with socket.socket(socket.AF_UNIX) as listener:
      try:
        listener.bind(self._address)
      except OSError:
        return  # The run has a zygote.
      listener.listen(socket.SOMAXCONN)
      if self._started is not None:
        self._started.wait(_END_SECONDS)  # It has ended.
      parent = '' if self._is_shared else str(os.getpid())
      arguments = str(listener.fileno()), parent, *modules
      with interrupts.blocked():
        self._started = subprocess.Popen(
          child_processes.command_of(main, *arguments),
          env=self._environment(child_processes.import_paths()),
          pass_fds=[listener.fileno()],
          stdin=subprocess.DEVNULL,
          stdout=subprocess.DEVNULL,
          stderr=output,
          start_new_session=self._is_shared,
        )

  def start(
    self,
    name: str,
    task: bytes,
    output: IO[Any],
    paths: Sequence[str] = (),
    directory: str | None = None,
  ) -> Process:
    """Starts a process, shielded from Ctrl-C.

    Args:
      name: Its name, for listings of processes.
      task: A pickled function without arguments, which it runs. `sys.argv` has
        the id of its parent and the name.
      output: File for its output, in append mode.
      paths: Its import paths, if others than those of this process.
      directory: Its working directory, if another.
    """
    paths = paths or child_processes.import_paths()
    environment = self._environment(paths)
    process: Process
    if _IS_AVAILABLE:
      if directory is None:
        with contextlib.suppress(FileNotFoundError):  # It was deleted.
          directory = os.getcwd()
      connection = self._connect(output)
      request = pickle.dumps((name, task, paths, environment, directory))
      # In memory: a socket would block until the zygote reads it.
      with child_processes.memory_file(request) as file:
        socket.send_fds(connection, [b' '], [file.fileno(), output.fileno()])
      handle = connections.Connection(connection.detach())
      process = ForkedProcess(name, handle)
    else:
      with child_processes.memory_file(task) as file, interrupts.blocked():
        process = subprocess.Popen(
          child_processes.command_of(_run_task, str(os.getpid()), name),
          env=environment,
          cwd=directory,
          stdin=file,
          stdout=output,
          stderr=output,
        )
    self._processes = [p for p in self._processes if p.poll() is None]
    self._processes.append(process)
    return process

  def kill_orphans(self) -> None:
    """Kills processes of the run that no running one has started."""
    running = {p.pid for p in self._processes if p.poll() is None}
    pid = self.pid
    if pid is not None or not self._is_shared:
      child_processes.kill_orphans(self._run, {*running, pid} - {None})

  def close(self) -> None:
    """Ends the processes, and the zygote with its last client."""
    if self._started is not None:
      if not self._is_shared:  # Else it has forked the zygote, and ends.
        self._started.kill()
      self._started.wait(_END_SECONDS)
    if _IS_AVAILABLE:
      for process in self._processes:
        process.close()

  def _environment(self, paths: Sequence[str]) -> dict[str, str]:
    return {
      **os.environ,
      'PYTHONPATH': os.pathsep.join(paths),
      child_processes.RUN_VARIABLE: self._run,
    }

  def _connect(self, output: Any) -> socket.socket:
    """Connects to the zygote, which is started if needed."""
    connection = socket.socket(socket.AF_UNIX)
    deadline = time.monotonic() + _END_SECONDS
    while True:
      self.begin(output=output)
      try:
        connection.connect(self._address)
        break
      except ConnectionRefusedError:
        if time.monotonic() > deadline:
          raise
        time.sleep(_POLL_SECONDS)  # Another client is about to start it.
    if not _is_mine(connection):
      connection.close()
      raise PermissionError('The address of the run is that of another user.')
    return connection


def _run_task() -> None:
  """Runs the task on standard input, at most to the end of its parent."""
  child_processes.get_signal_at_death(int(sys.argv[1]), signal.SIGKILL)
  pickle.load(sys.stdin.buffer)()


# Zygotes that were started before their runs.
_prepared: list[Zygote] = []


def prepare(modules: Sequence[str]) -> None:
  """Starts the zygote of the next run, with modules to import."""
  if not _prepared:
    _prepared.append(make())
    _prepared[0].begin(modules)


def make() -> Zygote:
  """Makes the zygote of a run on this host, or returns a prepared one."""
  return _prepared.pop() if _prepared else Zygote(uuid.uuid4().hex)


def main() -> None:
  """Runs a zygote, and the task in each process that it forks."""
  # Terminals and time-outs send them to all processes of a group.
  signal.pthread_sigmask(signal.SIG_BLOCK, _BLOCKED)
  _set_name('zygote')
  listener, parent, *modules = sys.argv[1:]
  if parent:
    child_processes.get_signal_at_death(int(parent), signal.SIGKILL)
  elif os.fork():  # Ray kills the children of a process that ends.
    return
  server = _Server(int(listener), is_shared=not parent)
  for module in modules:
    with contextlib.suppress(Exception):  # Processes will fail to import it.
      importlib.import_module(module)
  server.serve()


class _Server:
  """Serves the clients of a zygote, in its only thread."""

  def __init__(self, listener: int, is_shared: bool):
    self._listener = socket.socket(fileno=listener)
    self._listener.set_inheritable(False)
    self._is_shared = is_shared
    self._clients: list[connections.Connection] = []
    # Clients of running processes, by process id.
    self._running: dict[int, connections.Connection] = {}
    self._environment = dict(os.environ)

  def serve(self) -> None:
    """Serves forever, or to the end of the last client."""
    while True:
      # A process may be killed because another is about to replace it.
      awaited = [*self._clients, self._listener]
      for one in connections.wait(awaited, _POLL_SECONDS):
        if isinstance(one, connections.Connection):
          self._send_signal(one)
        else:
          self._start_process()
      self._reap()
      is_idle = not self._clients and not connections.wait([self._listener], 0)
      if self._is_shared and is_idle:
        return

  def _start_process(self) -> None:
    """Accepts a client, and forks its process, which exits from here."""
    accepted, _ = self._listener.accept()
    accepted.settimeout(_END_SECONDS)
    files: Any = None
    with contextlib.suppress(OSError):
      files = _is_mine(accepted) and socket.recv_fds(accepted, 1, 2)[1]
    if not files:  # The client is of another user, has ended, or hangs.
      accepted.close()
      return
    accepted.settimeout(None)
    client = connections.Connection(accepted.detach())
    self._clients.append(client)
    with open(files[0], 'rb') as file:
      name, task, paths, environment, directory = pickle.load(file)
    # What imports print belongs to the first process that needs them.
    _redirect_output(files[1])
    os.close(files[1])
    self._adopt(paths, environment, directory)
    run: Callable[[], None] | None = None
    with contextlib.suppress(Exception, SystemExit):
      run = pickle.loads(task)  # Imports its modules.
    sys.stdout.flush()
    sys.stderr.flush()
    gc.freeze()  # Collections would copy its memory.
    parent = os.getpid()
    try:
      pid = os.fork()
    except OSError as error:
      os.write(2, f'{name} could not be started: {error}\n'.encode())
      _report(client, 0, 1)
      return
    if pid:
      _redirect_output(0)  # To nowhere.
      self._running[pid] = client
      _report(client, pid)
      return
    for one in (self._listener, *self._clients):
      one.close()
    _run_forked(name, task, run, parent)
    sys.exit()

  def _adopt(
    self, paths: Sequence[str], after: dict[str, str], directory: str | None
  ) -> None:
    """Takes over import paths, environment and working directory.

    Variables that imports have changed stay, unless the client changes them.
    """
    sys.path[:] = dict.fromkeys([*paths, *sys.path])
    importlib.invalidate_caches()
    before = self._environment
    for name in before.keys() - after.keys():
      os.environ.pop(name, None)
    for name, value in after.items():
      if before.get(name) != value:
        os.environ[name] = value
    self._environment = after
    if directory is not None:
      with contextlib.suppress(OSError):
        os.chdir(directory)

  def _send_signal(self, client: connections.Connection) -> None:
    """Sends the signal of a client to its process, at its end SIGKILL."""
    try:
      number = client.recv()
    except (EOFError, ConnectionError):
      client.close()
      self._clients.remove(client)
      if not self._is_shared:  # They end with this one.
        return
      number = signal.SIGKILL
    for pid, owner in self._running.items():
      if owner is client:
        os.kill(pid, number)

  def _reap(self) -> None:
    """Reports which processes have ended."""
    with contextlib.suppress(ChildProcessError):
      while (ended := os.waitpid(-1, os.WNOHANG))[0]:
        pid, status = ended
        if pid in self._running:  # Imports may have started others.
          code = os.waitstatus_to_exitcode(status)
          _report(self._running.pop(pid), pid, code)


def _report(
  client: connections.Connection, pid: int, code: int | None = None
) -> None:
  """Reports a process, and its exit code if it has ended."""
  with contextlib.suppress(OSError):  # The client may have ended.
    client.send((os.getpid(), pid, code))


def _redirect_output(file: int) -> None:
  for number in (1, 2):
    os.dup2(file, number)


def _run_forked(
  name: str, task: bytes, run: Callable[[], None] | None, parent: int
) -> None:
  """Runs an unpickled task in a forked process, or the task afresh."""
  _set_name(name)
  signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])
  sys.argv[1:] = [str(parent), name]
  problem = 'an import failed' if run is None else _find_problem(parent)
  if run is None or problem:
    print(
      f'{name} starts afresh, without the modules imported by other processes: '
      f'{problem}.',
      file=sys.stderr,
      flush=True,
    )
    with child_processes.memory_file(task) as file:
      os.dup2(file.fileno(), 0)
    command = child_processes.command_of(_run_task, *sys.argv[1:])
    os.execv(command[0], command)
  if 'numpy' in sys.modules:  # Otherwise all would draw the same numbers.
    sys.modules['numpy'].random.seed()
  run()


def _set_name(name: str) -> None:
  """Sets the name of this process, of which the kernel keeps 15 bytes."""
  with contextlib.suppress(OSError), open('/proc/self/comm', 'wb') as file:
    file.write(os.fsencode(name))


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


def _is_mine(connection: socket.socket) -> bool:
  """Returns whether the other end is of this user."""
  size = _CREDENTIALS.size
  found = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
  return _CREDENTIALS.unpack(found)[1] == os.getuid()
