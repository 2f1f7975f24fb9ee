"""Workers in threads and processes of this host."""

import collections
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent import futures
from typing import Any, cast

from repertory.launch.experiments import failures
from repertory.launch.launchers import node_graph as node_graph_lib
from repertory.launch.launchers import polled_workers
from repertory.launch.platform import child_processes, stacks


class ThreadWorkers(polled_workers.PolledWorkers):
  """Workers in threads of this process, which cannot be killed."""

  def __init__(
    self,
    program: node_graph_lib.NodeGraph,
    clients: Mapping[str, Callable[[], Any]],
    threads: Mapping[str, threading.Thread],
    outcomes: Mapping[str, futures.Future],
  ):
    """Takes over started threads.

    Args:
      program: The node graph of these workers.
      clients: Client factories of serving nodes, by node.
      threads: Threads, by node.
      outcomes: Futures of the results or exceptions of threads, by node.
    """
    super().__init__(program, clients)
    self._threads = threads
    self._outcomes = outcomes

  def is_alive(self, name: str) -> bool:
    return self._threads[name].is_alive()

  def failure_of(self, name: str) -> failures.Failure:
    outcome = self._outcomes[name]
    error = outcome.exception() if outcome.done() else None
    if error is None:
      return polled_workers.describe_end(name, 0)
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
    return {'all nodes, in one process': stacks.of_this_process()}


class LocalProcesses(polled_workers.ProcessWorkers):
  """Workers in processes of this host."""

  def __init__(
    self,
    program: node_graph_lib.NodeGraph,
    clients: Mapping[str, Callable[[], Any]],
    processes: Mapping[str, subprocess.Popen],
    paths: Mapping[str, str],
    environment: Mapping[str, str],
    given: Mapping[str, bytes] | None = None,
  ):
    """Takes over started processes.

    Args:
      program: The node graph of these workers.
      clients: Client factories of serving nodes, by node.
      processes: Processes, by node.
      paths: Output files, by node.
      environment: Environment variables of the processes, besides those of this
        one.
      given: Contents of the standard input, by node, for processes that read
        it.
    """
    super().__init__(program, clients, paths)
    self._processes = dict(processes)
    self._environment = environment
    self._given = given or {}
    self._generations: collections.Counter = collections.Counter()

  def is_alive(self, name: str) -> bool:
    return self._processes[name].poll() is None

  def failure_of(self, name: str) -> failures.Failure:
    code = self._processes[name].poll() or 0
    return polled_workers.describe_end(name, code)

  def kill(self, name: str) -> str:
    owner = self.program.owner_of(name)
    # The process id of an ended process may have been reused.
    if self.is_alive(owner):
      child_processes.kill_tree(self._processes[owner])
    return owner

  def restart(self, name: str) -> None:
    self._generations[name] += 1
    self._kill_orphans()
    generation = {
      child_processes.GENERATION_VARIABLE: str(self._generations[name])
    }
    self._processes[name] = child_processes.start(
      cast(Sequence[str], self._processes[name].args),
      {**self._environment, **generation},
      self._paths[name],
      self._given.get(name),
    )

  def _ask_for_stacks(self, name: str) -> None:
    self._processes[name].send_signal(child_processes.STACKS_SIGNAL)

  def end(self) -> list[str]:
    hanging = super().end()
    self._kill_orphans()
    return hanging

  def _kill_orphans(self) -> None:
    child_processes.kill_orphans(
      self._environment[child_processes.RUN_VARIABLE],
      {p.pid for p in self._processes.values() if p.poll() is None},
    )
