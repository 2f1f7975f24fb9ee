"""Nodes that Ray has placed, each with a supervisor beside it."""

import collections
import contextlib
import os
import threading
from collections.abc import Callable, Mapping
from typing import Any

import ray
from ray import exceptions as ray_errors

from repertory.launch import failures
from repertory.launch.launchers import polled_workers
from repertory.launch.launchers import program as program_lib

# A supervisor answers at once if its host can be reached.
_ANSWER_SECONDS = 10.0
# How often what nodes print is fetched.
_FETCH_SECONDS = 1.0


class RayWorkers(polled_workers.ProcessWorkers):
  """Nodes in processes that supervisors have started.

  Each supervisor is asked once to say when its process has ended. If the answer
  is that it is gone itself, so is the node.
  """

  def __init__(
    self,
    program: program_lib.Program,
    clients: Mapping[str, Callable[[], Any]],
    supervisors: Mapping[str, Any],
    make_supervisor: Callable[[str], Any],
    start: Callable[[Any, str, int], None],
    paths: Mapping[str, str],
  ):
    """Takes over nodes that were started.

    Args:
      program: Whose they are.
      clients: By node that serves, what makes a client of it.
      supervisors: Ray's handles of the supervisors, by node.
      make_supervisor: Makes the one of a node anew, if it is gone.
      start: Starts a life of a node, with its supervisor.
      paths: By node, the file to which what it prints is fetched.
    """
    super().__init__(program, clients, paths)
    self._supervisors = dict(supervisors)
    self._make_supervisor = make_supervisor
    self._start = start
    self._lives: collections.Counter = collections.Counter()
    self._ends = {name: self._ask_for_end(name) for name in self._supervisors}
    self._codes: dict[str, int | None] = {}  # None of one that was lost.
    self._printed = _Printed(self._supervisors, paths)

  def is_alive(self, name: str) -> bool:
    if name in self._codes:
      return False
    end = self._ends[name]
    ready, _ = ray.wait([end], timeout=0)
    if not ready:
      return True
    try:
      self._codes[name] = ray.get(end)
    except ray_errors.ActorUnavailableError:  # It may come back.
      self._ends[name] = self._ask_for_end(name)
      return True
    except ray_errors.RayActorError:
      self._codes[name] = None
    return False

  def failure_of(self, name: str) -> failures.Failure:
    code = self._codes.get(name, 0)
    if code is None:
      cause = 'Its host, or what watches it there, was lost.'
      return failures.Failure(name, cause, is_lost=True)
    return polled_workers.describe_end(name, code)

  def kill(self, name: str) -> str:
    owner = self.program.owner_of(name)
    if self.is_alive(owner):
      supervisor = self._supervisors[owner]
      try:
        ray.get(supervisor.kill.remote(), timeout=_ANSWER_SECONDS)
        ray.wait([self._ends[owner]], timeout=_ANSWER_SECONDS)
      except (ray_errors.GetTimeoutError, ray_errors.RayActorError):
        ray.kill(supervisor)  # And with it the process, by the kernel.
        self._codes[owner] = None
    return owner

  def restart(self, name: str) -> None:
    self._printed.fetch(name)
    self._lives[name] += 1
    if self._codes.pop(name) is None:
      self._supervisors[name] = self._make_supervisor(name)
      self._printed.begin(name, self._supervisors[name])
    self._start(self._supervisors[name], name, self._lives[name])
    self._ends[name] = self._ask_for_end(name)

  def _fetch(self, name: str) -> None:
    self._printed.fetch(name)

  def _ask_for_stacks(self, name: str) -> None:
    self._supervisors[name].ask_for_stacks.remote()

  def end(self) -> list[str]:
    hanging = super().end()
    self._printed.close()
    return hanging

  def _ask_for_end(self, name: str) -> Any:
    return self._supervisors[name].wait_for_end.remote()


class _Printed:
  """Fetches what nodes print to files of this host."""

  def __init__(self, supervisors: Mapping[str, Any], paths: Mapping[str, str]):
    """Begins to fetch.

    Args:
      supervisors: Ray's handles, by node.
      paths: The files, by node.
    """
    self._paths = paths
    self._supervisors = dict(supervisors)
    self._places: collections.Counter = collections.Counter()
    self._locks = {name: threading.Lock() for name in supervisors}
    self._closed = threading.Event()
    self._thread = threading.Thread(target=self._fetch_all, daemon=True)
    self._thread.start()

  def begin(self, name: str, supervisor: Any) -> None:
    """Fetches from another supervisor, from the beginning."""
    with self._locks[name]:
      self._supervisors[name] = supervisor
      self._places[name] = 0

  def fetch(self, name: str) -> None:
    """Fetches what a node has printed so far; nothing if it cannot be had."""
    path = self._paths[name]
    with (
      self._locks[name],
      contextlib.suppress(
        OSError, ray_errors.GetTimeoutError, ray_errors.RayActorError
      ),
    ):
      while True:
        ask = self._supervisors[name].read.remote(self._places[name])
        found, self._places[name] = ray.get(ask, timeout=_ANSWER_SECONDS)
        if not found:
          return
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, 'ab') as file:
          file.write(found)

  def close(self) -> None:
    """Fetches the rest, and ends."""
    self._closed.set()
    self._thread.join()
    for name in self._supervisors:
      self.fetch(name)

  def _fetch_all(self) -> None:
    while not self._closed.wait(_FETCH_SECONDS):
      for name in list(self._supervisors):
        self.fetch(name)
