"""Base class of workers in processes, on any host."""

import abc
import collections
import contextlib
import os
import re
import time
from collections.abc import Mapping, Sequence

from repertory.launch.launchers import launcher
from repertory.launch.launchers import node_graph as node_graph_lib

# Time for processes to print their stacks.
_STACKS_SECONDS = 1.0

_LOG_LINES = 20
# Harmless messages of XLA in TensorFlow 2.15 at its first compilation.
_NOISE = re.compile(
  r'WARNING: All log messages before absl::InitializeLog\(\)'
  r'|I\d{4} .*\] Compiled cluster using XLA!'
  r'|.*\] SetPriority unimplemented for this stream'
)


class ProcessWorkers(launcher.Workers):
  """Base class of workers in processes, whose output goes to files."""

  def __init__(
    self,
    program: node_graph_lib.NodeGraph,
    addresses: Mapping[str, str | None],
    log_directory: str,
  ):
    super().__init__(program, addresses)
    self._paths = {
      name: os.path.join(log_directory, label)
      for name, label in program.labels.items()
    }

  def log_of(self, name: str) -> str:
    if name not in self._paths:
      return ''
    self._fetch(name)
    path = self._paths[name]
    with contextlib.suppress(OSError), open(path, errors='replace') as file:
      relevant = (line for line in file if not _NOISE.match(line))
      lines = ''.join(collections.deque(relevant, _LOG_LINES))
      return f'\nEnd of {path}:\n{lines}' if lines.strip() else ''
    return ''

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

  def _fetch(self, *names: str) -> None:
    """Fetches all output of nodes to their files."""

  @abc.abstractmethod
  def _ask_for_stacks(self, name: str) -> None:
    """Makes a process print the stacks of its threads."""


def _rest_of_log(path: str, start: int) -> str:
  """Returns a node's output from byte `start` on."""
  try:
    with open(path, errors='replace') as file:
      file.seek(start)
      return file.read()
  except OSError as error:  # It may have been deleted.
    return f'{type(error).__name__}: {error}\n'
