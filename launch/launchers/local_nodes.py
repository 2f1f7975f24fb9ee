"""Nodes in threads or processes of this host."""

import contextlib
import dataclasses
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent import futures
from typing import Any

from absl import logging

from repertory.components.network import network_interfaces
from repertory.components.runtime import worker_thread
from repertory.launch import failures
from repertory.launch.coordination import kinds
from repertory.launch.launchers import launcher, node_process, node_runner
from repertory.launch.platform import (
  child_processes,
  ports,
  printed,
  watchdog,
  zygote,
)


@contextlib.contextmanager
def launch(
  program: launcher.NodeGraph,
  log_directory: str,
  make_workers: 'Callable[..., ThreadWorkers | LocalProcesses]',
) -> Iterator[launcher.Workers]:
  """Launches nodes in workers of a class; see `Launcher.launch`."""
  printed.set_aside(log_directory)
  with node_runner.shared_interpreter(), launch_specs(program) as specs:
    addresses = {name: one.address for name, one in specs.items()}
    workers = make_workers(program, addresses, log_directory)
    try:
      for launch_spec in specs.values():
        workers.start(launch_spec)
      yield workers
    finally:
      workers.end()


class ThreadWorkers(launcher.Workers):
  """Workers in threads of this process, which cannot be killed."""

  def __init__(self, *arguments: Any):
    super().__init__(*arguments)
    self._runners: dict[str, node_runner.NodeRunner] = {}
    self._outcomes: dict[str, futures.Future] = {}

  def start(self, launch_spec: node_process.NodeLaunchSpec) -> None:
    """Runs a node in a new thread, and keeps its exception."""
    name = launch_spec.plan.name
    runner = self._runners[name] = launch_spec.make_runner(can_restart=False)
    self._outcomes[name] = worker_thread.run_apart(
      name, lambda: runner.run(launch_spec.serve)
    )

  def is_alive(self, name: str) -> bool:
    return name in self._outcomes and not self._outcomes[name].done()

  def failure_of(self, name: str) -> failures.Failure:
    error = self._outcomes[name].exception()
    if error is None:
      return failures.of_exit(name, 0)
    return failures.of_exception(name, error)

  def stacks(self, names: Sequence[str]) -> Mapping[str, str]:
    del names
    return {'all nodes, in one process': watchdog.stacks()}

  def end(self) -> None:
    """Waits for nodes to end, then asks them; warns of those still alive."""
    self.wait_for_end(self.exit_seconds)
    # The coordinator last, since others would wait for its replies in vain.
    coordinator = {kinds.COORDINATOR.name}
    for names in (set(self.names) - coordinator, coordinator):
      ending = list(filter(self.is_alive, names))
      for name in ending:
        self._runners[name].shut_down()
      futures.wait([self._outcomes[n] for n in ending], self.exit_seconds)
    for name in filter(self.is_alive, self.names):
      logging.warning('A thread of %s did not end.', name)


class LocalProcesses(launcher.Workers):
  """Workers in processes of this host.

  Attributes:
    processes: The newest process of each node, by name.
  """

  def __init__(self, *arguments: Any):
    super().__init__(*arguments)
    self.processes: dict[str, zygote.Process] = {}
    self._zygote = zygote.make()
    self._specs: dict[str, node_process.NodeLaunchSpec] = {}

  def start(self, launch_spec: node_process.NodeLaunchSpec) -> None:
    """Runs a node in a new process."""
    name = launch_spec.plan.name
    self._specs[name] = launch_spec
    path = self._paths[name]
    os.makedirs(os.path.dirname(path), exist_ok=True)  # May be deleted.
    with open(path, 'a') as file:
      self.processes[name] = self._zygote.start(name, launch_spec.task, file)

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
    self._zygote.kill_orphans()
    spec = self._specs[name]
    self.start(dataclasses.replace(spec, generation=spec.generation + 1))

  def _ask_for_stacks(self, name: str) -> None:
    self.processes[name].send_signal(child_processes.STACKS_SIGNAL)

  def end(self) -> None:
    with contextlib.closing(self._zygote):
      super().end()
      self._zygote.kill_orphans()


@contextlib.contextmanager
def launch_specs(
  program: launcher.NodeGraph,
) -> Iterator[dict[str, node_process.NodeLaunchSpec]]:
  """Yields launch specs, whose ports are reserved while the block runs."""
  with contextlib.ExitStack() as stack:
    held = {name: stack.enter_context(ports.held()) for name in program.served}
    address = network_interfaces.LOOPBACK.address
    yield {
      plan.name: node_process.NodeLaunchSpec(
        plan,
        {name: address(held[name]) for name in program.callees_of(plan.name)},
        program.rpc,
        held.get(plan.name),
      )
      for plan in program
    }
