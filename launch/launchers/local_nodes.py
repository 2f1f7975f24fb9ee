"""Nodes in threads or processes of this host."""

import collections
import contextlib
import os
import subprocess
import threading
import uuid
from collections.abc import Iterator, Mapping, Sequence
from concurrent import futures
from typing import Any, NamedTuple

import cloudpickle
from absl import logging

from repertory.components.runtime import network_interfaces
from repertory.launch.coordination import kinds
from repertory.launch.experiments import failures
from repertory.launch.launchers import (
  launcher,
  node_process,
  node_runner,
  process_workers,
  rpc,
)
from repertory.launch.launchers import node_graph as node_graph_lib
from repertory.launch.platform import (
  child_processes,
  ports,
  printed,
  watchdog,
)


class Placed(NamedTuple):
  """A node's launch spec, and the reserved port of its server, if any."""

  launch_spec: node_process.NodeLaunchSpec
  port: int | None

  def make_client(self) -> Any:
    address = network_interfaces.LOOPBACK.address(self.port or 0)
    return self.launch_spec.make_client(address)


@contextlib.contextmanager
def launch_threads(
  program: node_graph_lib.NodeGraph, log_directory: str
) -> Iterator[launcher.Workers]:
  """Launches nodes in threads of this process; see `Launcher.launch`."""
  printed.set_aside(log_directory)
  with node_runner.shared_interpreter(), placed(program) as nodes:
    workers = ThreadWorkers(program, nodes)
    try:
      for name in program.names:
        threading.Thread(
          target=workers.run, args=[name], name=name, daemon=True
        ).start()
      yield workers
    finally:
      workers.end()


class ThreadWorkers(launcher.Workers):
  """Workers in threads of this process, which cannot be killed."""

  def __init__(
    self, program: node_graph_lib.NodeGraph, nodes: Mapping[str, Placed]
  ):
    super().__init__(program)
    self._nodes = nodes
    self._runners: dict[str, node_runner.NodeRunner] = {}
    self._outcomes: dict[str, futures.Future] = {
      name: futures.Future() for name in program.names
    }

  def run(self, name: str) -> None:
    """Runs a node in its thread, and keeps its exception."""
    launch_spec, port = self._nodes[name]
    outcome = self._outcomes[name]
    try:
      runner = launch_spec.make_runner(generation=0, can_restart=False)
      self._runners[name] = runner
      if outcome.set_running_or_notify_cancel():
        launch_spec.run(runner, port)
        outcome.set_result(None)
    except BaseException as error:
      outcome.set_exception(error)

  def client(self, name: str) -> Any:
    return self._nodes[name].make_client()

  def is_alive(self, name: str) -> bool:
    return not self._outcomes[name].done()

  def failure_of(self, name: str) -> failures.Failure:
    outcome = self._outcomes[name]
    error = outcome.exception() if outcome.done() else None
    if error is None:
      return process_workers.describe_end(name, 0)
    return failures.Failure(name, repr(error))

  def kill(self, name: str) -> None:
    del name

  def restart(self, name: str) -> None:
    raise NotImplementedError(f'{name} is a thread.')

  def log_of(self, name: str) -> str:
    del name
    return ''

  def stacks(self, names: Sequence[str]) -> Mapping[str, str]:
    del names
    return {'all nodes, in one process': watchdog.stacks()}

  def end(self) -> None:
    """Waits for nodes to end, then asks them; warns of those still alive."""
    self.wait_for_end(self.exit_seconds)
    for outcome in self._outcomes.values():
      outcome.cancel()  # Of threads that have not started.
    # The coordinator last, since others would wait for its replies in vain.
    others = set(self.names) - {kinds.COORDINATOR.name}
    for names in (others, {kinds.COORDINATOR.name} & set(self.names)):
      ending = list(filter(self.is_alive, names))
      for name in ending:
        self._runners[name].shut_down()
      futures.wait([self._outcomes[n] for n in ending], self.exit_seconds)
    for name in filter(self.is_alive, self.names):
      logging.warning('A thread of %s did not end.', name)


@contextlib.contextmanager
def launch_processes(
  program: node_graph_lib.NodeGraph, log_directory: str
) -> Iterator[launcher.Workers]:
  """Launches nodes in processes of this host; see `Launcher.launch`."""
  printed.set_aside(log_directory)
  with placed(program) as nodes:
    workers = LocalProcesses(program, nodes, log_directory)
    try:
      for name in program.names:
        workers.start(name)
      yield workers
    finally:
      workers.end()


class LocalProcesses(process_workers.ProcessWorkers):
  """Workers in processes of this host, by node."""

  def __init__(
    self,
    program: node_graph_lib.NodeGraph,
    nodes: Mapping[str, Placed],
    log_directory: str,
  ):
    super().__init__(program, log_directory)
    self.processes: dict[str, subprocess.Popen] = {}
    self.run_id = uuid.uuid4().hex
    self._nodes = nodes
    self._generations: collections.Counter = collections.Counter()

  def start(self, name: str) -> None:
    """Starts a node's process."""
    launch_spec, port = self._nodes[name]
    path = self._paths[name]
    os.makedirs(os.path.dirname(path), exist_ok=True)  # May be deleted.
    with open(path, 'a') as file:
      self.processes[name] = child_processes.start_node(
        name,
        (port, network_interfaces.LOOPBACK, self._generations[name]),
        cloudpickle.dumps(launch_spec),
        file,
        self.run_id,
      )

  def client(self, name: str) -> Any:
    return self._nodes[name].make_client()

  def is_alive(self, name: str) -> bool:
    return name in self.processes and self.processes[name].poll() is None

  def failure_of(self, name: str) -> failures.Failure:
    code = self.processes[name].poll() or 0
    return process_workers.describe_end(name, code)

  def kill(self, name: str) -> str:
    owner = self.program.owner_of(name)
    # The process id of an ended process may have been reused.
    if self.is_alive(owner):
      child_processes.kill_tree(self.processes[owner])
    return owner

  def restart(self, name: str) -> None:
    self._generations[name] += 1
    self._end_orphans()
    self.start(name)

  def end(self) -> None:
    try:
      super().end()
    finally:
      self._end_orphans()

  def _ask_for_stacks(self, name: str) -> None:
    self.processes[name].send_signal(child_processes.STACKS_SIGNAL)

  def _end_orphans(self) -> None:
    """Kills processes of the run that no running node has started."""
    child_processes.kill_orphans(
      self.run_id,
      {p.pid for p in self.processes.values() if p.poll() is None},
    )


@contextlib.contextmanager
def placed(program: node_graph_lib.NodeGraph) -> Iterator[dict[str, Placed]]:
  """Reserves a port for each serving node; yields all nodes by name."""
  with contextlib.ExitStack() as stack:
    held = {name: stack.enter_context(ports.held()) for name in program.served}
    addresses = {
      name: network_interfaces.LOOPBACK.address(port)
      for name, port in held.items()
    }
    rpc_name = rpc.chosen()
    yield {
      name: Placed(
        node_process.NodeLaunchSpec.of(
          program,
          name,
          {callee: addresses[callee] for callee in program.callees_of(name)},
          rpc_name,
        ),
        held.get(name),
      )
      for name in program.names
    }
