"""Output of nodes on other hosts."""

import contextlib
import dataclasses
import os
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import ray
from ray import exceptions as ray_errors

# Period and time-out of fetching the output of nodes.
_FETCH_SECONDS = 1.0
_ROUND_SECONDS = 2.0
# Time-out of fetching output on demand.
_ANSWER_SECONDS = 10.0


@dataclasses.dataclass
class _Source:
  """Source of a node's output.

  Attributes:
    supervisor: Ray's handle of the node's supervisor.
    position: Bytes fetched so far.
  """

  supervisor: Any
  position: int = 0


class Printed:
  """Fetches the output of nodes to files of this host."""

  def __init__(self, paths: Mapping[str, str]):
    self._paths = paths
    self._sources: dict[str, _Source] = {}
    self._lock = threading.Lock()
    self._closed = threading.Event()
    self._thread = threading.Thread(target=self._fetch_often, daemon=True)
    self._thread.start()

  def begin(self, name: str, supervisor: Any) -> None:
    """Fetches a node's output from a new supervisor, from the beginning."""
    self._sources[name] = _Source(supervisor)

  def fetch(self, name: str) -> None:
    """Fetches a node's output so far, if its supervisor replies."""
    self._fetch([name], _ANSWER_SECONDS)

  def close(self) -> None:
    """Fetches the rest and stops the thread."""
    self._closed.set()
    self._thread.join(_ROUND_SECONDS + _ANSWER_SECONDS)
    self._fetch(list(self._sources), _ANSWER_SECONDS)

  def _fetch_often(self) -> None:
    while not self._closed.wait(_FETCH_SECONDS):
      self._fetch(list(self._sources), _ROUND_SECONDS)

  def _fetch(self, names: Sequence[str], seconds: float) -> None:
    """Fetches from some nodes concurrently; skips those that do not reply."""
    with self._lock:
      sources = {name: self._sources[name] for name in names}
      asked = {
        source.supervisor.read.remote(source.position): name
        for name, source in sources.items()
      }
      if not asked:
        return
      answered, _ = ray.wait(
        list(asked), num_returns=len(asked), timeout=seconds
      )
      for call in answered:
        name = asked[call]
        with contextlib.suppress(OSError, ray_errors.RayError):
          found, sources[name].position = ray.get(call)
          if found:
            self._write(name, found)

  def _write(self, name: str, found: bytes) -> None:
    path = self._paths[name]
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, 'ab') as file:
      file.write(found)
