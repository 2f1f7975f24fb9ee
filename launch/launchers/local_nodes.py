"""Nodes in threads or processes of this host.

Launchpad starts the threads and processes where it is installed. Without it,
nodes can be launched in any thread, since no signals are handled.
"""

import collections
import contextlib
import functools
import os
import pickle
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent import futures
from typing import Any, cast

import cloudpickle
from absl import logging

from repertory.components.runtime import network_interfaces
from repertory.launch import launchers
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


@contextlib.contextmanager
def launch_threads(
  program: node_graph_lib.NodeGraph, log_directory: str
) -> Iterator[launcher.Workers]:
  """Launches nodes in threads of this process; see `Launcher.launch`."""
  printed.set_aside(log_directory)
  with contextlib.ExitStack() as stack:  # Ends all that was started.
    stack.enter_context(node_runner.shared_interpreter())
    specs = stack.enter_context(launch_specs(program))
    workers = ThreadWorkers(program, clients_of(specs))
    stack.callback(workers.end)
    runs = {
      name: functools.partial(workers.run, launch_spec, port)
      for name, (launch_spec, port) in specs.items()
    }
    if rpc.chosen() == rpc.COURIER:
      stack.enter_context(
        launchers.launchpad.started(program.labels, runs, log_directory)
      )
    else:
      for name, run in runs.items():
        threading.Thread(target=run, name=name, daemon=True).start()
    yield workers


class ThreadWorkers(launcher.Workers):
  """Workers in threads of this process, which cannot be killed."""

  def __init__(
    self,
    program: node_graph_lib.NodeGraph,
    clients: Mapping[str, Callable[[], Any]],
  ):
    super().__init__(program, clients)
    self._runners: dict[str, node_runner.NodeRunner] = {}
    self._outcomes: dict[str, futures.Future] = {
      name: futures.Future() for name in program.names
    }

  def run(
    self, launch_spec: node_process.NodeLaunchSpec, port: int | None
  ) -> None:
    """Runs a node in its thread, and keeps its exception."""
    name = launch_spec.plan.name
    outcome = self._outcomes[name]
    try:
      runner = launch_spec.make_runner(generation=0, can_restart=False)
      self._runners[name] = runner
      if outcome.set_running_or_notify_cancel():
        launch_spec.run(runner, port)
        outcome.set_result(None)
    except BaseException as error:
      outcome.set_exception(error)

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
  with contextlib.ExitStack() as stack:  # Ends all that was started.
    specs = stack.enter_context(launch_specs(program))
    workers = LocalProcesses(program, clients_of(specs), log_directory)
    stack.callback(workers.end_orphans)
    if rpc.chosen() == rpc.COURIER:
      runs = {
        name: functools.partial(node_process.run, launch_spec, port)
        for name, (launch_spec, port) in specs.items()
      }
      workers.processes.update(
        stack.enter_context(
          launchers.launchpad.started(
            program.labels, runs, log_directory, workers.environment
          )
        )
      )
      stack.callback(workers.end)
    else:
      stack.callback(workers.end)
      for name, (launch_spec, port) in specs.items():
        workers.start_node(name, launch_spec, port)
    yield workers


class LocalProcesses(process_workers.ProcessWorkers):
  """Workers in processes of this host, by node."""

  def __init__(
    self,
    program: node_graph_lib.NodeGraph,
    clients: Mapping[str, Callable[[], Any]],
    log_directory: str,
  ):
    super().__init__(program, clients, log_directory)
    self.processes: dict[str, subprocess.Popen] = {}
    self.environment = {
      # Child processes must find the same modules as this process.
      'PYTHONPATH': os.pathsep.join(path for path in sys.path if path),
      child_processes.LAUNCHER_VARIABLE: str(os.getpid()),
      child_processes.RUN_VARIABLE: uuid.uuid4().hex,
    }
    self._inputs: dict[str, bytes] = {}
    self._generations: collections.Counter = collections.Counter()

  def start_node(
    self, name: str, launch_spec: node_process.NodeLaunchSpec, port: int | None
  ) -> None:
    """Starts a node's process."""
    server = pickle.dumps((port, network_interfaces.LOOPBACK))
    self._inputs[name] = server + cloudpickle.dumps(launch_spec)
    self._start(name, child_processes.node_command(name))

  def _start(self, name: str, command: Sequence[str]) -> None:
    generation = str(self._generations[name])
    self.processes[name] = child_processes.start(
      command,
      {**self.environment, child_processes.GENERATION_VARIABLE: generation},
      self._paths[name],
      self._inputs.get(name),
    )

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
    self.end_orphans()
    self._start(name, cast(Sequence[str], self.processes[name].args))

  def _ask_for_stacks(self, name: str) -> None:
    self.processes[name].send_signal(child_processes.STACKS_SIGNAL)

  def end_orphans(self) -> None:
    """Kills processes of the run that no running node has started."""
    child_processes.kill_orphans(
      self.environment[child_processes.RUN_VARIABLE],
      {p.pid for p in self.processes.values() if p.poll() is None},
    )


@contextlib.contextmanager
def launch_specs(
  program: node_graph_lib.NodeGraph,
) -> Iterator[dict[str, tuple[node_process.NodeLaunchSpec, int | None]]]:
  """Yields launch spec and reserved port of each node, by name."""
  with contextlib.ExitStack() as stack:
    held = {name: stack.enter_context(ports.held()) for name in program.served}
    rpc_name = rpc.chosen()
    yield {
      name: (
        node_process.NodeLaunchSpec.of(
          program,
          name,
          {
            callee: network_interfaces.LOOPBACK.address(held[callee])
            for callee in program.callees_of(name)
          },
          rpc_name,
        ),
        held.get(name),
      )
      for name in program.names
    }


def clients_of(
  specs: Mapping[str, tuple[node_process.NodeLaunchSpec, int | None]],
) -> dict[str, Callable[[], Any]]:
  """Returns a client factory of each serving node, by name."""
  return {
    name: functools.partial(
      launch_spec.make_client, network_interfaces.LOOPBACK.address(port)
    )
    for name, (launch_spec, port) in specs.items()
    if port is not None
  }
