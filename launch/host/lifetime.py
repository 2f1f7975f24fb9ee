"""How a node of a program lives: reports, stops, fails and ends."""

import contextlib
import ctypes
import faulthandler
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent import futures
from typing import Any

from absl import logging

from repertory.components import signals
from repertory.launch import failures
from repertory.launch.coordination import reports
from repertory.launch.host import printed

# How often nodes report, and hear what is to be done.
REPORT_PERIOD_SECONDS = 0.25

# How long a node may take to start, which on a busy machine is minutes, and how
# often others look for it. One that dies meanwhile is noticed at once.
START_SECONDS = 300.0
_LOOK_SECONDS = 0.1

# Tell the processes of nodes, and those that they start: who launched them, in
# which run, and how often the node was started before.
LAUNCHER_VARIABLE = 'REPERTORY_LAUNCHER'
RUN_VARIABLE = 'REPERTORY_RUN'
LIFE_VARIABLE = 'REPERTORY_LIFE'

# Makes a node's process print the stacks of all its threads.
STACKS_SIGNAL = signal.SIGUSR2

# Nodes that share an interpreter get it after so long when they wait for it.
# Python's 5 ms are the time of several steps, and of many requests.
_SWITCH_SECONDS = 0.0005

_SET_PARENT_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of prctl(2).


def failures_reported(name: str, coordinator):
  """Tells the coordinator why a node fails, before it does."""
  return failures_told(name, coordinator.fail)


@contextlib.contextmanager
def failures_told(
  name: str, tell: Callable[[failures.Failure], None]
) -> Iterator[None]:
  """Calls `tell` with why a node fails, before it does."""
  try:
    yield
  except BaseException as error:
    tell(failures.of_current_exception(name, error))
    raise


def share_interpreter() -> None:
  """Lets the threads of this process take turns more often."""
  sys.setswitchinterval(min(sys.getswitchinterval(), _SWITCH_SECONDS))


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


def is_listening(client) -> bool:
  """Returns whether the server of a Courier client takes connections."""
  host, _, port = client.address.rpartition(':')
  try:
    socket.create_connection((host, int(port)), REPORT_PERIOD_SECONDS).close()
  except OSError:
    return False
  return True


def wait_for_server(
  client,
  timeout_seconds: float = START_SECONDS,
  should_stop: Callable[[], bool] = lambda: False,
) -> None:
  """Waits until the server of a Courier client takes connections.

  A call would do so, too, but looks for the server ever less often: a minute
  after it began, only every half minute.

  Args:
    client: Of a node that is being started.
    timeout_seconds: For its start, if that is more than the least.
    should_stop: Ends the wait.

  Raises:
    signals.Stopped: If the wait was ended.
    TimeoutError: If the server did not start in time.
  """
  timeout_seconds = max(timeout_seconds, START_SECONDS)
  deadline = time.monotonic() + timeout_seconds
  while not is_listening(client):
    if should_stop():
      raise signals.Stopped
    if time.monotonic() > deadline:
      raise TimeoutError(
        f'Waited {timeout_seconds:g} seconds for a node to listen at '
        f'{client.address}.'
      )
    time.sleep(_LOOK_SECONDS)


def die_with_launcher() -> None:
  """Lets the kernel end this process when the one that launched it is gone.

  The first thing that a node's process does. What it prints is appended from
  then on.
  """
  ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
  if os.getppid() != int(os.environ[LAUNCHER_VARIABLE]):
    os._exit(1)  # It was gone before the kernel was asked.
  printed.append()


def isolate(coordinator=None) -> bool:
  """Lets a node's process live and die with the launcher's alone.

  Ctrl-C reaches all processes of a terminal, and SIGTERM may be sent to a whole
  group; only the launcher heeds them. In a thread there is nothing to do.

  Args:
    coordinator: Client of the coordinator, for which a node waits; None in the
      coordinator itself.

  Returns:
    Whether the node has a process of its own.
  """
  if threading.current_thread() is not threading.main_thread():
    if coordinator is not None:
      wait_for_server(coordinator)
    return False
  faulthandler.enable()
  faulthandler.register(STACKS_SIGNAL)
  signal.signal(signal.SIGINT, signal.SIG_IGN)
  # Ignored it would be by what the node's environments start, too.
  signal.signal(signal.SIGTERM, lambda number, frame: None)
  signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
  logging.set_verbosity(logging.WARNING)  # Launchpad logs what it binds.
  if coordinator is not None:
    wait_for_server(coordinator)
  return True


def life() -> int:
  """Returns how often this node was started before, in this run."""
  return int(os.environ.get(LIFE_VARIABLE, '0'))
