"""Calls in the background that may never return."""

import queue
import threading
from collections.abc import Callable
from concurrent import futures
from typing import Any


def run_apart(name: str, function: Callable[[], Any]) -> futures.Future:
  """Makes a single call in a `WorkerThread`; returns its result to come."""
  thread = WorkerThread(name)
  future = thread.submit(function)
  thread.close(0.0)  # It ends after the call.
  return future


class WorkerThread:
  """Makes calls in order, in a daemon thread.

  Unlike an executor of `concurrent.futures`, it does not keep the process alive
  while a call hangs.
  """

  def __init__(self, name: str):
    self._calls: queue.SimpleQueue = queue.SimpleQueue()
    self._thread = threading.Thread(target=self._run, name=name, daemon=True)
    self._thread.start()

  def submit(self, function: Callable[[], Any]) -> futures.Future:
    """Makes a call after all earlier ones; returns its result to come."""
    future = futures.Future()
    self._calls.put((future, function))
    return future

  def close(self, timeout_seconds: float) -> None:
    """Ends the thread after all calls, within the timeout."""
    self._calls.put(None)
    self._thread.join(timeout_seconds)

  def _run(self) -> None:
    while (call := self._calls.get()) is not None:
      future, function = call
      try:
        future.set_result(function())
      except BaseException as error:  # Raised by `result`.
        future.set_exception(error)
