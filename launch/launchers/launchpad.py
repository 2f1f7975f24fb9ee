"""Nodes in threads or processes of this host, launched by Launchpad.

The only module that depends on Launchpad and its private parts.
"""

import abc
import contextlib
import io
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar

import cloudpickle
import launchpad as lp
from absl import flags, logging
from launchpad import address
from launchpad.launch import worker_manager
from launchpad.launch.run_locally import launch_local_output_to_files
from launchpad.nodes.python import local_multi_processing

from repertory.components.runtime import callers
from repertory.launch.launchers import (
  calls,
  courier_servers,
  launcher,
  local_nodes,
  local_workers,
  node_runner,
  polled_workers,
)
from repertory.launch.launchers import node_graph as node_graph_lib
from repertory.launch.platform import child_processes, interrupts, printed


class _Launchpad(abc.ABC):
  """Shared parts of the launchers of threads and processes.

  Attributes:
    launch_type: Launchpad's name of the launch type.
    can_restart: Whether nodes can be killed and restarted.
  """

  launch_type: ClassVar[str]
  can_restart: ClassVar[bool] = False

  @contextlib.contextmanager
  def launch(
    self, program: node_graph_lib.NodeGraph, log_directory: str
  ) -> Iterator[launcher.Workers]:
    """Launches a node graph; see `launcher.Launcher.launch`."""
    printed.set_aside(log_directory)
    # Pickled nodes of processes. Here, the next run can remove a killed run's
    # files.
    program_directory = os.path.join(log_directory, '.programs')
    shutil.rmtree(program_directory, ignore_errors=True)
    os.makedirs(program_directory)
    # Launchpad reads this from the environment only once, when it is imported.
    launch_local_output_to_files._LOGGING_DIR = log_directory
    started = _Started(local_nodes.make_environment())
    with contextlib.ExitStack() as stack:  # Ends all that was started.
      stack.enter_context(self._surroundings())
      stack.callback(shutil.rmtree, program_directory, ignore_errors=True)
      ports = stack.enter_context(local_nodes.held_ports(program))
      stack.callback(started.forget)
      stack.callback(self._end_rest, started)
      hosts = None if self.can_restart else started.hosts
      translated, clients = _translate(program, ports, hosts)
      self._start(translated, program_directory, started)
      workers = self._take(program, clients, log_directory, started)
      stack.callback(local_nodes.end, workers, started.hosts)
      yield workers

  def _start(
    self, translated: lp.Program, directory: str, started: '_Started'
  ) -> None:
    """Starts all nodes, and keeps track of those that were started."""
    if not flags.FLAGS.is_parsed():
      # Keeps Launchpad from parsing command lines of programs with other flags,
      # such as pytest's `-v`.
      flags.FLAGS.mark_as_parsed()
    handlers = interrupts.current_handlers()
    try:
      with (
        self._output_kept(directory),
        interrupts.blocked(),
        started.noted(),
      ):
        lp.launch(
          translated,
          launch_type=self.launch_type,
          local_resources=_resources(
            translated, directory, started.environment
          ),
          terminal='output_to_files',
        )
    finally:
      interrupts.set_handlers(handlers)

  def _surroundings(self) -> contextlib.AbstractContextManager:
    """Returns a context in which nodes run."""
    return contextlib.nullcontext()

  def _output_kept(self, directory: str) -> contextlib.AbstractContextManager:
    """Hides the output of Launchpad while it starts nodes.

    Args:
      directory: Folder for its temporary files.
    """
    del directory
    # With threads, Launchpad has neither, and the first nodes may print
    # already.
    return contextlib.nullcontext()

  @abc.abstractmethod
  def _take(
    self, program, clients, log_directory: str, started: '_Started'
  ) -> polled_workers.PolledWorkers:
    """Makes the workers of the started nodes.

    Args:
      clients: Client factories of serving nodes, by node.
    """

  @abc.abstractmethod
  def _end_rest(self, started: '_Started') -> None:
    """Ends all started nodes that still run, with or without workers."""


class LaunchpadThreads(_Launchpad):
  """Nodes in threads of this process."""

  launch_type = 'local_mt'

  def _surroundings(self):
    return node_runner.shared_interpreter()

  def _take(self, program, clients, log_directory, started):
    del log_directory
    workers = started.by_node(program)
    return local_workers.ThreadWorkers(
      program,
      clients,
      {name: worker.thread for name, worker in workers.items()},
      {name: worker.future for name, worker in workers.items()},
    )

  def _end_rest(self, started):
    started.hosts.end([worker.thread for worker in started.workers()])


class LaunchpadProcesses(_Launchpad):
  """Nodes in processes of this host."""

  launch_type = 'local_mp'
  can_restart = True

  @contextlib.contextmanager
  def _output_kept(self, directory):
    with (
      contextlib.redirect_stdout(io.StringIO()),
      _temporary_files_in(directory),
    ):
      yield

  def _take(self, program, clients, log_directory, started):
    return local_workers.LocalProcesses(
      program,
      clients,
      started.by_node(program),
      local_nodes.paths_of(program, log_directory),
      started.environment,
    )

  def _end_rest(self, started):
    local_nodes.end_processes(started.workers(), started.environment)


class _Started:
  """Nodes started by Launchpad in a launch that may have failed midway.

  Attributes:
    environment: Environment variables of the run's processes.
    hosts: Node runners in threads.
  """

  def __init__(self, environment: Mapping[str, str]):
    self.environment = environment
    self.hosts = node_runner.NodeRunners()
    self._managers: list[Any] = []

  @contextlib.contextmanager
  def noted(self) -> Iterator[None]:
    """Records Launchpad's worker managers while the block runs.

    The return value of the launch would be missing after a failure.
    """
    managers, made = self._managers, worker_manager.WorkerManager

    class Noted(made):
      def __init__(self, *arguments, **settings):
        super().__init__(*arguments, **settings)
        managers.append(self)

    setattr(worker_manager, made.__name__, Noted)
    try:
      yield
    finally:
      setattr(worker_manager, made.__name__, made)

  def workers(self) -> list[Any]:
    """Returns Launchpad's workers, which have no public accessor."""
    return [
      worker
      for manager in self._managers
      for group in manager._active_workers.values()
      for worker in group
    ]

  def by_node(self, program: node_graph_lib.NodeGraph) -> dict[str, Any]:
    """Returns Launchpad's workers by node.

    Launchpad keeps threads by kind, processes by kind and index.
    """
    (manager,) = self._managers
    workers = manager._active_workers
    found = {}
    for name, label in program.labels.items():
      kind, index = label.split('/')
      found[name] = (
        workers[label][0] if label in workers else workers[kind][int(index)]
      )
    return found

  def forget(self) -> None:
    """Clears Launchpad's workers.

    Otherwise it would wait for them at exit and report their ends.
    """
    for manager in self._managers:
      manager._active_workers.clear()


class _CourierNode(lp.CourierNode):
  """Serving node at a reserved port."""

  port: int

  def bind_addresses(self, **settings):
    del settings
    self.courier_address.bind(_LocalAddress(self.port))

  def create_handle(self):
    return self._track_handle(_Handle(self.courier_address))


class _Handle(lp.CourierHandle):
  """Makes clients whose calls can be canceled."""

  def dereference(self):
    return courier_servers.make_client(
      self._address.resolve(), self._kwargs['call_timeout'], token=''
    )


class _LocalAddress(address.AbstractAddressBuilder):
  """Address of a node on this host."""

  def __init__(self, port: int):
    self._port = port

  def build(self) -> str:
    return f'localhost:{self._port}'


class _Service:
  """Runs a node in a thread or process of Launchpad.

  Launchpad would serve all public methods of a node, so the served methods are
  bound here instead, once the node exists.
  """

  def __init__(
    self,
    plan: node_graph_lib.PlannedNode,
    peers: Mapping[str, Any],
    hosts: node_runner.NodeRunners | None,
    token: str,
    call_timeout_seconds: float,
  ):
    """Makes the node runner.

    Args:
      hosts: Collection of node runners in threads, to which it is added; None
        in a process, which can be killed and restarted.
      token: Secret shared by all nodes of the launch.
    """
    can_restart = hosts is None
    if can_restart:
      child_processes.ignore_terminal_signals()
      logging.set_verbosity(logging.WARNING)  # Launchpad logs bound methods.
    generation = child_processes.generation() if can_restart else 0
    caller = callers.Caller(plan.name, generation, token)
    self._host = node_runner.NodeRunner(
      plan,
      calls.signed(peers, caller),
      generation=generation,
      token=token,
      can_restart=can_restart,
      call_timeout_seconds=call_timeout_seconds,
    )
    self._server: Any = None
    if hosts is not None:
      hosts.add(plan.kind, self._host)

  def set_courier_server(self, server) -> None:
    """Receives Launchpad's server, which `run` starts."""
    self._server = server

  def run(self) -> None:
    """Runs the node."""
    # Launchpad has bound methods of this object to the server. The reference
    # cycle would keep both and the node alive.
    server, self._server = self._server, None
    self._host.run(
      lambda served: courier_servers.serving(
        server, served, self._host.shut_down
      )
    )


def _translate(
  program: node_graph_lib.NodeGraph,
  ports: Mapping[str, int],
  hosts: node_runner.NodeRunners | None,
) -> tuple[lp.Program, dict[str, Callable[[], Any]]]:
  """Makes Launchpad's program, and client factories of serving nodes."""
  translated, handles = lp.Program('repertory'), {}
  for plan in program:
    peers = {name: handles[name] for name in program.callees_of(plan.name)}
    seconds = program.call_timeout_seconds
    arguments = (_Service, plan, peers, hosts, program.token, seconds)
    if not plan.kind.serves:
      translated.add_node(lp.PyClassNode(*arguments), label=plan.kind.name)
      continue
    settings = {'thread_pool_size': program.max_waiting_calls}
    node = _CourierNode(*arguments, courier_kwargs=settings)
    node.port = ports[plan.name]
    handle = translated.add_node(node, label=plan.kind.name)
    handle.set_client_kwargs(call_timeout=seconds)
    handles[plan.name] = handle
  return translated, {name: h.dereference for name, h in handles.items()}


def _resources(translated: lp.Program, directory: str, environment):
  """Returns the local resources of each group of processes."""
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
  """Sets the folder of temporary files while the block runs."""
  before = tempfile.tempdir
  tempfile.tempdir = directory
  try:
    yield
  finally:
    tempfile.tempdir = before
