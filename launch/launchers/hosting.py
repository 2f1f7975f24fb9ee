"""How a node lives: made, run, reporting, closed; in every launcher.

Needs no TensorFlow.
"""

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from absl import logging

from repertory.components import interfaces, signals
from repertory.launch import failures
from repertory.launch.coordination import kinds, reports
from repertory.launch.host import watchdog
from repertory.launch.launchers import calls, launcher, program
from repertory.launch.nodes import node as node_lib

# Nodes that share an interpreter get it after so long when they wait for it.
# Python's 5 ms are the time of several steps, and of many requests.
_SWITCH_SECONDS = 0.0005

# Of nodes in threads, when they have been told to end.
_JOIN_SECONDS = 5

Serve = Callable[
  [Mapping[str, Callable[..., Any]]], contextlib.AbstractContextManager
]


class Host:
  """Runs one node, from its making to its end."""

  def __init__(
    self,
    plan: program.PlannedNode,
    peers: Mapping[str, Any],
    *,
    life: int = 0,
    token: str = '',
    can_restart: bool = False,
    beside: node_lib.Node | None = None,
    interface: interfaces.Interface = interfaces.LOOPBACK,
    call_timeout_seconds: float = watchdog.START_SECONDS,
  ):
    """Makes nothing yet.

    Args:
      peers: Clients of those it calls, by name; all nodes but the coordinator
        call that one.
      life: How often the node was started before, in this run.
      token: What all nodes of the launch know.
      can_restart: Whether nodes that end too early can be started again.
      beside: The node in whose thread or process it is, which cannot be started
        again without that one.
      interface: Over what others reach its servers.
      call_timeout_seconds: How long a call between nodes may take, and so its
        last report.
    """
    self._plan = plan
    self._peers = peers
    self._coordinator = peers.get(kinds.COORDINATOR.name)
    self._tells = None
    if self._coordinator is not None:
      self._tells = (
        self._coordinator.fail if beside is None else self._coordinator.abort
      )
    self._can_restart = can_restart
    self._call_timeout_seconds = call_timeout_seconds
    self._stop = signals.StopSignal()
    self._shut_down = threading.Event()
    self._context = node_lib.Context(
      plan.name,
      self._coordinator,
      peers,
      self._stop,
      life,
      token,
      can_restart,
      is_alone=can_restart and beside is None and not plan.beside,
      beside=beside,
      interface=interface,
    )

  def shut_down(self) -> None:
    """Lets the node end; called in other threads."""
    self._shut_down.set()
    self._stop.set()

  def run(self, serve: Serve) -> None:
    """Makes the node and runs it to its end.

    Args:
      serve: Lets others call the given methods, by name, while its block runs.
    """
    try:
      if self._coordinator is not None:
        calls.wait_for_server(self._coordinator, should_stop=self._stop.is_set)
      node = self.make()
    except signals.Stopped:
      return  # The run has ended before the node's part began.
    with contextlib.ExitStack() as until_shut_down:

      def begin():
        served = dict(node.served)
        for plan in self._plan.beside:
          beside = until_shut_down.enter_context(self._beside(node, plan))
          served.update(beside.served)
        until_shut_down.enter_context(serve(served))

      self.finish(node, begin)

  def make(self) -> node_lib.Node:
    """Makes the node and tells the coordinator what it runs with."""
    with self._failures_told():
      node = None
      try:
        self._context.tell_start('being made')
        node = self._plan.make(self._context)
        if self._coordinator is not None:
          # Who registers has started, and is started again when it fails.
          self._coordinator.register(self._plan.name, self._describe(node))
      except BaseException:
        self._stop.set()  # It ends the threads of what was made of the node.
        if node is not None:
          self._close(node)
        raise
    return node

  def _describe(self, node: node_lib.Node) -> Mapping[str, Any]:
    """Returns with what a node runs and in which process, and on which host."""
    described = {'pid': os.getpid(), **node.description}
    interface = self._context.interface
    if interface == interfaces.LOOPBACK:
      return described
    return {'host': interface.host, **described}

  def finish(
    self, node: node_lib.Node, begin: Callable[[], None] = lambda: None
  ) -> None:
    """Runs the node that was made, and closes it.

    What it did is done before it closes, so that no close can undo it, nor keep
    others waiting: one that fails or hangs is only told.

    Args:
      node: From `make`.
      begin: Called before it runs, while it reports already: it may take longer
        than a node may be silent.
    """
    kind = self._plan.kind
    with self._failures_told():
      try:
        # Told before it closes: who needs it would take that for a failure of
        # its own.
        with self._failures_told(), self._pulse(node):
          for part in (begin, node.run):
            with contextlib.suppress(signals.Stopped):
              part()
      except BaseException:
        self._stop.set()  # Nothing of a node that fails may wait any longer.
        self._close(node)
        raise
      if self._coordinator is not None and kind.phase is not None:
        self._coordinator.finish(self._plan.name)
      if (problem := self._close(node)) and self._coordinator is not None:
        with contextlib.suppress(Exception):  # It may be gone by now.
          self._coordinator.warn(self._plan.name, problem)
    if kind.serves:
      # Without a time-out, for others may need it as long as the run lasts. It
      # ends with the launcher: who leaves `launch` shuts it down or kills it,
      # the kernel kills a process whose launcher is gone (`die_with_launcher`),
      # and threads are daemons, which go with their process.
      self._shut_down.wait()

  @contextlib.contextmanager
  def _beside(
    self, node: node_lib.Node, plan: program.PlannedNode
  ) -> Iterator[node_lib.Node]:
    """Makes a node and runs it beside this one until the block ends."""
    host = Host(
      plan,
      self._peers,
      life=self._context.life,
      token=self._context.token,
      can_restart=self._can_restart,
      beside=node,
      interface=self._context.interface,
      call_timeout_seconds=self._call_timeout_seconds,
    )
    made = host.make()
    thread = threading.Thread(
      target=host.finish, args=[made], name=plan.name, daemon=True
    )
    with shared_interpreter():
      thread.start()
      try:
        yield made
      finally:
        host.shut_down()
        thread.join(_JOIN_SECONDS)
        if thread.is_alive():
          logging.warning('The thread of %s did not end.', plan.name)

  def _close(self, node: node_lib.Node) -> str:
    """Closes a node, whatever it raises; returns what is to be told of it."""
    try:
      node.close()
    except signals.Stopped:
      pass
    except BaseException as error:
      logging.exception('%s could not be closed.', self._plan.name)
      failure = failures.of_exception(self._plan.name, error)
      return failure.not_closed
    return ''

  def _pulse(self, node: node_lib.Node):
    if self._coordinator is None:
      return contextlib.nullcontext()
    does_part = self._plan.kind.phase is not None
    return _Pulse(
      node.report,
      self._stop,
      stops_with_run=does_part,
      timeout_seconds=self._call_timeout_seconds,
    )

  @contextlib.contextmanager
  def _failures_told(self) -> Iterator[None]:
    """Tells the coordinator, once, why the node fails, before it does."""
    try:
      yield
    except signals.Stopped:
      raise
    except BaseException as error:
      tell, self._tells = self._tells, None
      if tell is not None:
        tell(failures.of_exception(self._plan.name, error))
      raise


class Hosts:
  """Nodes in threads of this process, which cannot be killed.

  Attributes:
    is_hurried: See `launcher.Workers`.
  """

  def __init__(self):
    self.is_hurried = False
    self._lock = threading.Lock()
    self._added: list[tuple[kinds.Kind, Host, threading.Thread]] = []
    self._is_ended = False

  def add(self, kind: kinds.Kind, host: Host) -> None:
    """Takes the host of a node; called in the node's thread."""
    with self._lock:
      self._added.append((kind, host, threading.current_thread()))
      is_ended = self._is_ended
    if is_ended:
      host.shut_down()

  def end(self, threads: Sequence[threading.Thread]) -> None:
    """Lets all nodes end that have not, and warns of those that do not.

    Args:
      threads: All that were started, also of nodes that are not there yet.
    """
    with self._lock:
      self._is_ended = True
      added = list(self._added)
    # Who still reports to the coordinator would wait for it in vain.
    for is_last in (False, True):
      ending = []
      for kind, host, thread in added:
        if (kind is kinds.COORDINATOR) == is_last and thread.is_alive():
          host.shut_down()
          ending.append(thread)
      self._join(ending)
    known = {thread for _, _, thread in added}
    self._join([thread for thread in threads if thread not in known])
    for thread in threads:
      if thread.is_alive():
        logging.warning('A thread of %s lives on.', thread.name)

  def _join(self, threads: Sequence[threading.Thread]) -> None:
    """Waits for the ends of threads, for all of them together so long."""
    seconds = launcher.HURRIED_SECONDS if self.is_hurried else _JOIN_SECONDS
    deadline = time.monotonic() + seconds
    for thread in threads:
      thread.join(max(0.0, deadline - time.monotonic()))


class _Pulse(contextlib.AbstractContextManager):
  """Reports from a thread of its own, while the block runs and once after it.

  A report that fails sets the stop signal and is raised at the end. One that
  hangs is left to itself. If the block failed, that is what counts, and there
  is no last report.
  """

  def __init__(
    self,
    report: Callable[[], reports.Directive],
    stop: signals.StopSignal,
    *,
    stops_with_run: bool,
    timeout_seconds: float,
  ):
    """Reports nothing yet.

    Args:
      report: Makes one.
      stop: Ends the waits of the node.
      stops_with_run: Whether to set `stop` when the run stops.
      timeout_seconds: For the last report, and the one before.
    """
    self._report = report
    self._stop = stop
    self._stops_with_run = stops_with_run
    self._timeout_seconds = timeout_seconds
    self._ended, self._failed = threading.Event(), threading.Event()
    self._run_stops = False
    self._error: BaseException | None = None
    self._thread = threading.Thread(
      target=self._beat, name='pulse', daemon=True
    )

  def __enter__(self) -> None:
    self._thread.start()

  def __exit__(self, kind, error, trace) -> None:
    """Makes the last report.

    Raises:
      TimeoutError: If that took too long, but for a run that stops.
      BaseException: What a report raised.
    """
    if error is not None:
      self._failed.set()
      self._ended.set()
      self._thread.join(_JOIN_SECONDS)
      return
    self._ended.set()
    self._thread.join(self._timeout_seconds)
    if self._error is not None:
      raise self._error
    if self._thread.is_alive() and not self._may_fail():
      raise TimeoutError(
        f'Waited {self._timeout_seconds:g} seconds for the last report of a '
        'node that is done.'
      )

  def _beat(self) -> None:
    try:
      while not self._ended.wait(reports.PERIOD_SECONDS):
        if self._report().phase == reports.STOPPING:
          self._run_stops = True
          if self._stops_with_run:
            self._stop.set()
    except BaseException as error:
      self._error = error
      self._stop.set()
      return
    try:
      if not self._failed.is_set():
        self._report()
    except BaseException as error:
      if not self._may_fail():
        self._error = error

  def _may_fail(self) -> bool:
    """Returns whether the coordinator may be gone before the node is."""
    return self._stop.is_set() or self._run_stops


@contextlib.contextmanager
def shared_interpreter() -> Iterator[None]:
  """Lets the threads of this process take turns more often."""
  before = sys.getswitchinterval()
  sys.setswitchinterval(min(before, _SWITCH_SECONDS))
  try:
    yield
  finally:
    sys.setswitchinterval(before)
