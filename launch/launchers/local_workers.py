"""Threads and processes of this host that are nodes of a program."""

import collections
import contextlib
import os
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent import futures
from typing import Any

from repertory.launch import failures
from repertory.launch.host import child_processes, interrupts, stacks
from repertory.launch.launchers import launcher
from repertory.launch.launchers import program as program_lib

# How long nodes may take to end, when they have been told to.
EXIT_TIMEOUT_SECONDS = 5

_POLL_SECONDS = 0.1
# Processes get so long to print their stacks.
_STACKS_SECONDS = 1.0

_LOG_LINES = 20


class LocalWorkers(launcher.Workers):
  """What threads and processes have in common."""

  def __init__(
    self,
    program: program_lib.Program,
    clients: Mapping[str, Callable[[], Any]],
  ):
    """Takes over nodes that were started.

    Args:
      program: Whose they are.
      clients: By node that serves, what makes a client of it.
    """
    super().__init__(program)
    self._clients = clients

  def client(self, name: str) -> Any:
    return self._clients[name]()

  def wait_for_end(self, seconds: float, but: str | None = None) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
      alive = {name for name in self.names if self.is_alive(name)}
      if not alive or alive == {but} or (but and but not in alive):
        return
      time.sleep(_POLL_SECONDS)

  def end(self) -> list[str]:
    """Waits for all to end and kills what does not; returns who still lives."""
    self.wait_for_end(
      launcher.HURRIED_SECONDS if self.is_hurried else EXIT_TIMEOUT_SECONDS
    )
    for name in self.names:
      if self.is_alive(name):
        self.kill(name)
    return [name for name in self.names if self.is_alive(name)]


class Threads(LocalWorkers):
  """Nodes in threads of this process, which cannot be killed."""

  def __init__(
    self,
    program: program_lib.Program,
    clients: Mapping[str, Callable[[], Any]],
    threads: Mapping[str, threading.Thread],
    outcomes: Mapping[str, futures.Future],
  ):
    """Takes over threads.

    Args:
      program: Whose they are.
      clients: By node that serves, what makes a client of it.
      threads: By node.
      outcomes: By node, has what its thread raised when that has ended.
    """
    super().__init__(program, clients)
    self._threads = threads
    self._outcomes = outcomes

  def is_alive(self, name: str) -> bool:
    return self._threads[name].is_alive()

  def failure_of(self, name: str) -> failures.Failure:
    outcome = self._outcomes[name]
    error = outcome.exception() if outcome.done() else None
    return failures.Failure(name, repr(error) if error else _describe_end(0))

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


class Processes(LocalWorkers):
  """Nodes in processes of their own."""

  def __init__(
    self,
    program: program_lib.Program,
    clients: Mapping[str, Callable[[], Any]],
    processes: Mapping[str, subprocess.Popen],
    paths: Mapping[str, str],
    environment: Mapping[str, str],
  ):
    """Takes over processes.

    Args:
      program: Whose they are.
      clients: By node that serves, what makes a client of it.
      processes: By node.
      paths: By node, the file to which it prints.
      environment: Variables of the processes besides this one's.
    """
    super().__init__(program, clients)
    self._processes = dict(processes)
    self._paths = paths
    self._environment = environment
    self._lives: collections.Counter = collections.Counter()

  def is_alive(self, name: str) -> bool:
    return self._processes[name].poll() is None

  def failure_of(self, name: str) -> failures.Failure:
    code = self._processes[name].poll() or 0
    if code < 0:
      cause = f'Its process ended with signal {-code}.'
      return failures.Failure(name, cause, is_lost=True)
    return failures.Failure(name, _describe_end(code))

  def kill(self, name: str) -> str:
    owner = self.program.owner_of(name)
    # The process id of one that has ended may be another's by now.
    if self.is_alive(owner):
      child_processes.kill_tree(self._processes[owner])
    return owner

  def restart(self, name: str) -> None:
    arguments = self._processes[name].args
    self._lives[name] += 1
    self._kill_strays()
    environment = {
      **os.environ,
      **self._environment,
      child_processes.LIFE_VARIABLE: str(self._lives[name]),
    }
    path = self._paths[name]
    os.makedirs(os.path.dirname(path), exist_ok=True)  # It may be gone.
    with open(path, 'a') as file, interrupts.blocked():
      self._processes[name] = subprocess.Popen(
        arguments, env=environment, stdout=file, stderr=file
      )

  def log_of(self, name: str) -> str:
    if name not in self._processes:
      return ''
    path = self._paths[name]
    with contextlib.suppress(OSError), open(path, errors='replace') as file:
      lines = ''.join(file.readlines()[-_LOG_LINES:])
      return f'\nEnd of {path}:\n{lines}'
    return ''

  def stacks(self, names: Sequence[str]) -> Mapping[str, str]:
    asked = {}
    for name in names:
      if name in self._processes and self.is_alive(name):
        path = self._paths[name]
        asked[name] = os.path.getsize(path) if os.path.exists(path) else 0
        self._processes[name].send_signal(child_processes.STACKS_SIGNAL)
    time.sleep(_STACKS_SECONDS)
    return {name: self._read(name, start) for name, start in asked.items()}

  def end(self) -> list[str]:
    hanging = super().end()
    self._kill_strays()
    return hanging

  def _kill_strays(self) -> None:
    child_processes.kill_strays(
      self._environment[child_processes.RUN_VARIABLE],
      {p.pid for p in self._processes.values() if p.poll() is None},
    )

  def _read(self, name: str, start: int) -> str:
    try:
      with open(self._paths[name], errors='replace') as file:
        file.seek(start)
        return file.read()
    except OSError as error:  # Somebody removed it.
      return f'{type(error).__name__}: {error}\n'


def _describe_end(code: int) -> str:
  return f'It ended early, with exit code {code}.'
