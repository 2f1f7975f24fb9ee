"""Nodes in threads or processes of this host.

Launchpad starts the threads and processes where it is installed. Without it,
nodes can be launched in any thread, since no signals are handled.
"""

import collections
import contextlib
import functools
import os
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent import futures
from typing import cast

import cloudpickle
from absl import logging

from repertory.components.runtime import network_interfaces
from repertory.launch import failures, launchers
from repertory.launch.coordination import kinds
from repertory.launch.launchers import (
  launcher,
  node_process,
  node_runner,
  rpc,
)
from repertory.launch.platform import (
  child_processes,
  ports,
  printed,
  watchdog,
)


@contextlib.contextmanager
def launch(
  program: launcher.NodeGraph,
  log_directory: str,
  make_workers: 'Callable[..., ThreadWorkers | LocalProcesses]',
) -> Iterator[launcher.Workers]:
  """Launches nodes in workers of a class; see `Launcher.launch`."""
  printed.set_aside(log_directory)
  with contextlib.ExitStack() as stack:  # Ends all that was started.
    stack.enter_context(node_runner.shared_interpreter())
    specs = stack.enter_context(launch_specs(program))
    addresses = {name: one.address for name, one in specs.items()}
    workers = make_workers(program, addresses, log_directory)
    stack.callback(workers.end)
    if program.rpc.library == rpc.COURIER:
      runs = {
        name: functools.partial(workers.run, launch_spec)
        for name, launch_spec in specs.items()
      }
      workers.processes.update(
        stack.enter_context(
          launchers.launchpad.started(
            program.labels, runs, log_directory, workers.environment
          )
        )
      )
    else:
      for name, launch_spec in specs.items():
        workers.start(name, launch_spec)
    yield workers


class ThreadWorkers(launcher.Workers):
  """Workers in threads of this process, which cannot be killed."""

  environment = None  # Of processes.

  def __init__(
    self,
    program: launcher.NodeGraph,
    addresses: Mapping[str, str | None],
    log_directory: str,
  ):
    super().__init__(program, addresses, log_directory)
    self.processes: dict[str, subprocess.Popen] = {}  # There are none.
    self._runners: dict[str, node_runner.NodeRunner] = {}
    self._outcomes: dict[str, futures.Future] = {
      name: futures.Future() for name in program.names
    }

  def start(self, name: str, launch_spec: node_process.NodeLaunchSpec) -> None:
    """Starts a node's thread."""
    threading.Thread(
      target=self.run, args=[launch_spec], name=name, daemon=True
    ).start()

  def run(self, launch_spec: node_process.NodeLaunchSpec) -> None:
    """Runs a node in its thread, and keeps its exception."""
    name = launch_spec.plan.name
    outcome = self._outcomes[name]
    try:
      runner = launch_spec.make_runner(generation=0, can_restart=False)
      self._runners[name] = runner
      if outcome.set_running_or_notify_cancel():
        launch_spec.run(runner)
        outcome.set_result(None)
    except BaseException as error:
      outcome.set_exception(error)

  def is_alive(self, name: str) -> bool:
    return not self._outcomes[name].done()

  def failure_of(self, name: str) -> failures.Failure:
    outcome = self._outcomes[name]
    error = None if outcome.cancelled() else outcome.exception()
    if error is None:
      return failures.of_exit(name, 0)
    return failures.of_exception(name, error)

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


class LocalProcesses(launcher.Workers):
  """Workers in processes of this host, by node."""

  def __init__(
    self,
    program: launcher.NodeGraph,
    addresses: Mapping[str, str | None],
    log_directory: str,
  ):
    super().__init__(program, addresses, log_directory)
    self.processes: dict[str, subprocess.Popen] = {}
    self.environment = child_processes.variables(uuid.uuid4().hex, sys.path)
    self._inputs: dict[str, bytes] = {}
    self._generations: collections.Counter = collections.Counter()

  run = staticmethod(node_process.run)

  def start(self, name: str, launch_spec: node_process.NodeLaunchSpec) -> None:
    """Starts a node's process."""
    self._inputs[name] = cloudpickle.dumps(launch_spec)
    self._start(name, child_processes.node_command(name))

  def _start(self, name: str, command: Sequence[str]) -> None:
    path = self._paths[name]
    os.makedirs(os.path.dirname(path), exist_ok=True)  # May be deleted.
    with open(path, 'a') as file:
      self.processes[name] = child_processes.start(
        command,
        self.environment,
        self._generations[name],
        file,
        self._inputs.get(name),
      )

  def is_alive(self, name: str) -> bool:
    return name in self.processes and self.processes[name].poll() is None

  def failure_of(self, name: str) -> failures.Failure:
    return failures.of_exit(name, self.processes[name].poll() or 0)

  def kill(self, name: str) -> str:
    owner = self.program.owner_of(name)
    if owner in self.processes:
      child_processes.kill_tree(self.processes[owner])
    return owner

  def restart(self, name: str) -> None:
    self._generations[name] += 1
    self._end_orphans()
    self._start(name, cast(Sequence[str], self.processes[name].args))

  def _ask_for_stacks(self, name: str) -> None:
    self.processes[name].send_signal(child_processes.STACKS_SIGNAL)

  def end(self) -> None:
    super().end()
    self._end_orphans()

  def _end_orphans(self) -> None:
    """Kills processes of the run that no running node has started."""
    child_processes.kill_orphans(
      self.environment[child_processes.RUN_VARIABLE],
      {p.pid for p in self.processes.values() if p.poll() is None},
    )


@contextlib.contextmanager
def launch_specs(
  program: launcher.NodeGraph,
) -> Iterator[dict[str, node_process.NodeLaunchSpec]]:
  """Yields launch specs, whose ports are reserved while the block runs."""
  with contextlib.ExitStack() as stack:
    calls = program.rpc
    held = {name: stack.enter_context(ports.held()) for name in program.served}
    yield {
      plan.name: node_process.NodeLaunchSpec(
        plan,
        {
          callee: network_interfaces.LOOPBACK.address(held[callee])
          for callee in program.callees_of(plan.name)
        },
        calls,
        held.get(plan.name),
      )
      for plan in program
    }
