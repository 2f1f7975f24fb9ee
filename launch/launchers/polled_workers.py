"""Nodes that are looked at now and then, wherever they run."""

import abc
import collections
import contextlib
import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from repertory.launch import failures
from repertory.launch.launchers import launcher
from repertory.launch.launchers import program as program_lib

# How long nodes may take to end, when they have been told to.
EXIT_TIMEOUT_SECONDS = 5

_POLL_SECONDS = 0.1

# Processes get so long to print their stacks.
_STACKS_SECONDS = 1.0

_LOG_LINES = 20
# What XLA of TensorFlow 2.15 prints at its first program, whatever comes of it.
_NOISE = re.compile(
  r'WARNING: All log messages before absl::InitializeLog\(\)'
  r'|I\d{4} .*\] Compiled cluster using XLA!'
  r'|.*\] SetPriority unimplemented for this stream'
)


class PolledWorkers(launcher.Workers):
  """What nodes have in common that tell of their ends when they are asked."""

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
    self.kill_all(self.names)
    return [name for name in self.names if self.is_alive(name)]


class ProcessWorkers(PolledWorkers):
  """What nodes have in common that are processes, on whatever host."""

  def __init__(
    self,
    program: program_lib.Program,
    clients: Mapping[str, Callable[[], Any]],
    paths: Mapping[str, str],
  ):
    """Takes over processes.

    Args:
      program: Whose they are.
      clients: By node that serves, what makes a client of it.
      paths: By node, the file of this host that has what it prints.
    """
    super().__init__(program, clients)
    self._paths = paths

  def log_of(self, name: str) -> str:
    if name not in self._paths:
      return ''
    self._fetch(name)
    return _end_of_log(self._paths[name])

  def stacks(self, names: Sequence[str]) -> Mapping[str, str]:
    asked = {}
    for name in names:
      if name in self._paths and self.is_alive(name):
        self._fetch(name)
        path = self._paths[name]
        asked[name] = os.path.getsize(path) if os.path.exists(path) else 0
        self._ask_for_stacks(name)
    time.sleep(_STACKS_SECONDS)
    for name in asked:
      self._fetch(name)
    return {
      name: _rest_of_log(self._paths[name], start)
      for name, start in asked.items()
    }

  def _fetch(self, name: str) -> None:
    """Sees to it that all that a node has printed is in its file."""

  @abc.abstractmethod
  def _ask_for_stacks(self, name: str) -> None:
    """Lets a process print where its threads are."""


def describe_end(name: str, code: int) -> failures.Failure:
  """Says how the process of a node ended.

  Args:
    code: Its exit code; minus the number of the signal that ended it.
  """
  if code < 0:
    cause = f'Its process ended with signal {-code}.'
    return failures.Failure(name, cause, is_lost=True)
  return failures.Failure(name, f'It ended early, with exit code {code}.')


def _end_of_log(path: str) -> str:
  """Returns the last lines of what a node printed; '' if there are none."""
  with contextlib.suppress(OSError), open(path, errors='replace') as file:
    told = (line for line in file if not _NOISE.match(line))
    lines = ''.join(collections.deque(told, _LOG_LINES))
    return f'\nEnd of {path}:\n{lines}' if lines.strip() else ''
  return ''


def _rest_of_log(path: str, start: int) -> str:
  """Returns what a node printed from one byte on."""
  try:
    with open(path, errors='replace') as file:
      file.seek(start)
      return file.read()
  except OSError as error:  # Somebody removed it.
    return f'{type(error).__name__}: {error}\n'
