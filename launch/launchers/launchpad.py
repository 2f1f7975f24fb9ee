"""Threads and processes of this host, launched by Launchpad.

The only module that knows Launchpad, and what of it is private.
"""

import abc
import collections
import contextlib
import io
import os
import shutil
import sys
import tempfile
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import cloudpickle
import launchpad as lp
from absl import flags, logging
from launchpad.launch.run_locally import launch_local_output_to_files
from launchpad.nodes.python import local_multi_processing

from repertory.components import loopback
from repertory.components.settings import SettingError
from repertory.launch.host import child_processes, interrupts, printed
from repertory.launch.launchers import hosting, launcher, local_workers
from repertory.launch.launchers import program as program_lib


class _Launchpad(launcher.Launcher):
  """What is the same for threads and processes."""

  def check(self) -> None:
    if threading.current_thread() is not threading.main_thread():
      raise SettingError(
        'launch_type',
        f'must be used in the main thread, got {self.name!r} in another: '
        'Launchpad handles operating-system signals, which Python allows there '
        'alone. What needs no launcher, for all is in one thread, may run '
        'anywhere.',
      )

  @contextlib.contextmanager
  def launch(
    self, program: program_lib.Program, log_directory: str
  ) -> Iterator[launcher.Workers]:
    printed.set_aside(log_directory)
    # What processes are to run. Here the next run finds what a killed one left.
    program_directory = os.path.join(log_directory, '.programs')
    shutil.rmtree(program_directory, ignore_errors=True)
    os.makedirs(program_directory)
    # Launchpad reads this from the environment, but once, when it is imported.
    launch_local_output_to_files._LOGGING_DIR = log_directory
    environment = {
      # Children must find whatever the launching process could import.
      'PYTHONPATH': os.pathsep.join(path for path in sys.path if path),
      child_processes.LAUNCHER_VARIABLE: str(os.getpid()),
      child_processes.RUN_VARIABLE: uuid.uuid4().hex,
    }
    with self._surroundings():
      try:
        translated, clients = _translate(program, self.can_restart)
        manager = self._start(translated, program_directory, environment)
        workers = self._take(
          program,
          clients,
          _workers_of(manager, program),
          log_directory,
          environment,
        )
        try:
          yield workers
        finally:
          for name in workers.end():
            logging.warning('The thread of %s did not end.', name)
          # Launchpad waits for its workers at exit, and reports their ends.
          manager._active_workers.clear()
      finally:
        shutil.rmtree(program_directory, ignore_errors=True)

  def _start(self, translated: lp.Program, directory: str, environment):
    """Starts all nodes; returns Launchpad's manager of them."""
    if not flags.FLAGS.is_parsed():
      # Launchpad would read the arguments of a program that has flags of its
      # own, or none, such as pytest's `-v`.
      flags.FLAGS.mark_as_parsed()
    handlers = interrupts.current_handlers()
    try:
      with (
        contextlib.redirect_stdout(io.StringIO()),
        _temporary_files_in(directory),
        interrupts.blocked(),
      ):
        return lp.launch(
          translated,
          launch_type=self.name,
          local_resources=_resources(translated, directory, environment),
          terminal='output_to_files',
        )
    finally:
      interrupts.set_handlers(handlers)

  def _surroundings(self) -> contextlib.AbstractContextManager:
    """Holds while nodes run."""
    return contextlib.nullcontext()

  @abc.abstractmethod
  def _take(
    self, program, clients, workers, log_directory: str, environment
  ) -> local_workers.LocalWorkers:
    """Takes over what was started.

    Args:
      clients: By node that serves, what makes a client of it.
      workers: Launchpad's, by node.
    """


@launcher.register
class ThreadLauncher(_Launchpad):
  """Nodes in threads of this process."""

  name = 'local_mt'
  title = 'threads'
  help = 'threads of this process'
  rank = 0

  def _surroundings(self):
    return hosting.shared_interpreter()

  def _take(self, program, clients, workers, log_directory, environment):
    del log_directory, environment
    return local_workers.Threads(
      program,
      clients,
      {name: worker.thread for name, worker in workers.items()},
      {name: worker.future for name, worker in workers.items()},
    )


@launcher.register
class ProcessLauncher(_Launchpad):
  """Nodes in processes of this host."""

  name = 'local_mp'
  title = 'processes'
  help = 'processes of this host'
  can_restart = True
  rank = 1

  def _take(self, program, clients, workers, log_directory, environment):
    paths = {
      name: os.path.join(log_directory, label)
      for name, label in _labels(program).items()
    }
    return local_workers.Processes(
      program, clients, workers, paths, environment
    )


class _Service:
  """A node, in the thread or process that Launchpad has made for it.

  Courier binds all public methods; so what others may call is bound by `_serve`
  instead, when the node is there.
  """

  def __init__(
    self,
    plan: program_lib.PlannedNode,
    peers: Mapping[str, Any],
    can_restart: bool,
  ):
    if can_restart:  # So it has a process of its own.
      child_processes.heed_launcher_alone()
      logging.set_verbosity(logging.WARNING)  # Launchpad logs what it binds.
    life = child_processes.life() if can_restart else 0
    self._host = hosting.Host(plan, peers, life=life, can_restart=can_restart)
    self._server: Any = None

  def set_courier_server(self, server) -> None:
    """Takes the server that Launchpad made, which is then ours to start."""
    self._server = server

  def run(self) -> None:
    """Runs the node."""
    self._host.run(self._serve)

  @contextlib.contextmanager
  def _serve(self, served: Mapping[str, Callable[..., Any]]) -> Iterator[None]:
    """Takes calls from this machine."""
    server = self._server
    if server is None:
      yield
      return
    for name, method in served.items():
      server.Bind(name, method)
    server.Bind('shutdown', self._host.shut_down)
    server.Start()
    try:
      loopback.restrict(server.port)
      yield
    finally:
      server.Stop()
      server.Join()


def _translate(
  program: program_lib.Program, can_restart: bool
) -> tuple[lp.Program, dict[str, Callable[[], Any]]]:
  """Makes Launchpad's program, and what makes clients of nodes that serve."""
  translated, handles = lp.Program('repertory'), {}
  for plan in program:
    callees = {name for one in (plan, *plan.beside) for name in one.calls}
    peers = {name: handles[name] for name in sorted(callees)}
    arguments = (_Service, plan, peers, can_restart)
    if not plan.kind.serves:
      translated.add_node(lp.PyClassNode(*arguments), label=plan.kind.name)
      continue
    settings = {'thread_pool_size': program.max_waiting_calls}
    node = lp.CourierNode(*arguments, courier_kwargs=settings)
    handle = translated.add_node(node, label=plan.kind.name)
    handle.set_client_kwargs(call_timeout=program.call_timeout_seconds)
    handles[plan.name] = handle
  return translated, {name: h.dereference for name, h in handles.items()}


def _workers_of(manager, program: program_lib.Program) -> dict[str, Any]:
  """Returns Launchpad's workers by node; it offers no other way to them.

  Threads it keeps by kind, processes by kind and place.
  """
  workers = manager._active_workers
  found = {}
  for name, label in _labels(program).items():
    kind, place = label.split('/')
    found[name] = (
      workers[label][0] if label in workers else workers[kind][int(place)]
    )
  return found


def _labels(program: program_lib.Program) -> dict[str, str]:
  """Returns what Launchpad calls each node, and the file of what it prints.

  That is <kind>/<place>, a place being the node's among those of its kind.
  """
  places: collections.Counter = collections.Counter()
  found = {}
  for plan in program:
    kind = plan.kind.name
    found[plan.name] = f'{kind}/{places[kind]}'
    places[kind] += 1
  return found


def _resources(translated: lp.Program, directory: str, environment):
  """Returns with what each group of processes starts."""
  init_file = os.path.join(directory, 'init.pkl')
  with open(init_file, 'wb') as file:
    cloudpickle.dump(child_processes.die_with_launcher, file)
  return {
    label: local_multi_processing.PythonProcess(
      args={'init_file': init_file}, env=environment
    )
    for label in translated.groups
  }


@contextlib.contextmanager
def _temporary_files_in(directory: str) -> Iterator[None]:
  """Lets temporary files be made in a directory."""
  before = tempfile.tempdir
  tempfile.tempdir = directory
  try:
    yield
  finally:
    tempfile.tempdir = before
