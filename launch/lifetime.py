"""How a node of a program lives: reports, stops, fails and ends."""

import contextlib
import ctypes
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent import futures
from typing import Any

from absl import logging

from repertory.components import signals
from repertory.launch import failures, reports

# How often nodes report, and hear what is to be done.
REPORT_PERIOD_SECONDS = 0.25

# Tells the processes of nodes who launched them.
LAUNCHER_VARIABLE = 'REPERTORY_LAUNCHER'

_SET_PARENT_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of prctl(2).


@contextlib.contextmanager
def failures_reported(name: str, coordinator) -> Iterator[None]:
  """Tells the coordinator why a node fails, before it does."""
  try:
    yield
  except BaseException as error:
    coordinator.fail(failures.of_current_exception(name, error))
    raise


@contextlib.contextmanager
def pulse(
  report: Callable[[], reports.Directive], stop: signals.StopSignal
) -> Iterator[None]:
  """Reports from a thread of its own, and sets `stop` when the run stops.

  A report that fails sets it too and is raised at the end. The last report is
  made when the block has ended.
  """
  ended = threading.Event()
  errors: list[Exception] = []

  def beat():
    try:
      while not ended.wait(REPORT_PERIOD_SECONDS):
        if report().phase == reports.STOPPING:
          stop.set()
    except Exception as error:
      errors.append(error)
      stop.set()

  thread = threading.Thread(target=beat, name='pulse', daemon=True)
  thread.start()
  try:
    yield
  finally:
    ended.set()
    thread.join()
  if errors:
    raise errors[0]
  try:
    report()
  except Exception:
    # At the end of a run the coordinator may be gone before a node is.
    if not stop.is_set():
      raise


@contextlib.contextmanager
def closed_at_end(node, stop: signals.StopSignal) -> Iterator[None]:
  """Closes a node that has done its part, was stopped, or fails."""
  try:
    yield
  except signals.Stopped:
    pass
  except BaseException:
    stop.set()  # Nothing of a node that fails may wait any longer.
    raise
  finally:
    node.close()


def result_of(call: futures.Future, should_stop: Callable[[], bool]) -> Any:
  """Waits for a call to another node, which has a time-out of its own.

  Raises:
    signals.Stopped: If the wait was ended by `should_stop`.
  """
  while not futures.wait([call], timeout=REPORT_PERIOD_SECONDS).done:
    if should_stop():
      call.cancel()
      raise signals.Stopped
  return call.result()


def isolate() -> None:
  """Lets a node's process live and die with the launcher's alone.

  Ctrl-C reaches all processes of a terminal; only the launcher heeds it. The
  kernel ends a node whose launcher is gone. In a thread there is nothing to do.
  """
  if threading.current_thread() is not threading.main_thread():
    return
  signal.signal(signal.SIGINT, signal.SIG_IGN)
  signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
  logging.set_verbosity(logging.WARNING)  # Launchpad logs what it binds.
  ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
  launcher = os.environ.get(LAUNCHER_VARIABLE)
  if launcher is not None and os.getppid() != int(launcher):
    os._exit(1)  # It was gone before the kernel was asked.
