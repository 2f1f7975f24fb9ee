"""Lifecycle of a node in every launcher: construction, heartbeats, run, close.

Needs no TensorFlow.
"""

import contextlib
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from absl import logging

from repertory.components.network import network_interfaces
from repertory.components.runtime import signals
from repertory.launch import failures
from repertory.launch.coordination import kinds, reports
from repertory.launch.launchers import calls, launcher
from repertory.launch.nodes import node as node_lib

# Switch interval of threads when nodes share an interpreter. Python's default
# of 5 ms is the time of several steps and many requests.
_SWITCH_SECONDS = 0.0005

# Time-out of threads after they were asked to end.
_JOIN_SECONDS = 5

Serve = Callable[
  [Mapping[str, Callable[..., Any]]], contextlib.AbstractContextManager
]


class NodeRunner:
  """Runs one node through its lifecycle.

  Attributes:
    has_reported: Whether the coordinator knows of the node's failure.
  """

  def __init__(
    self,
    plan: launcher.PlannedNode,
    peers: Mapping[str, Any],
    *,
    beside: node_lib.Node | None = None,
    **settings: Any,
  ):
    """Prepares the context; does not make the node yet.

    Args:
      plan: The node to run.
      peers: Clients of the nodes it calls, by name; all nodes but the
        coordinator call the coordinator.
      beside: See `node.Context`.
      **settings: `generation`, `token`, `can_restart` and `interface` of the
        context.
    """
    self._plan = plan
    self._coordinator = peers.get(kinds.COORDINATOR.name)
    self._settings = settings
    self._stop = signals.StopSignal()
    self._shut_down = threading.Event()
    self.has_reported = False
    is_alone = beside is None and not plan.beside
    self._context = node_lib.Context(
      plan.name,
      self._coordinator,
      peers,
      self._stop,
      is_alone=is_alone and settings.get('can_restart', False),
      beside=beside,
      **settings,
    )

  def shut_down(self) -> None:
    """Asks the node to end; called in other threads."""
    self._shut_down.set()
    self._stop.set()

  def run(self, serve: Serve) -> None:
    """Makes the node and runs it to its end.

    Args:
      serve: Context manager that serves the given methods, by name.
    """
    with contextlib.ExitStack() as until_shut_down:

      def begin():
        served = {**node.served, 'shutdown': self.shut_down}
        for plan in self._plan.beside:
          beside = until_shut_down.enter_context(self._beside(node, plan))
          served.update(beside.served)
        until_shut_down.enter_context(serve(served))

      try:
        if self._coordinator is not None:
          calls.wait_for_server(self._coordinator, stop=self._stop)
        with self._reporting_failure():
          node = self._make()
          self._work(node, begin)
      except signals.Stopped:
        return  # The run ended before the node started.
      self._finish()

  def _make(self) -> node_lib.Node:
    """Makes the node and registers it with the coordinator."""
    self._context.report_start('being made')
    node = self._plan.make(self._context)
    if self._coordinator is not None:
      # A registered node counts as started and is restarted on failure.
      interface = self._context.interface
      is_local = interface == network_interfaces.LOOPBACK
      host = {} if is_local else {'host': interface.host}
      description = {**host, 'pid': os.getpid(), **node.description}
      self._coordinator.register(self._plan.name, description)
    return node

  def _work(
    self, node: node_lib.Node, begin: Callable[[], None] = lambda: None
  ) -> None:
    """Runs the node, after `begin`, which may take longer than time-outs."""
    with self._heartbeats(node):
      for part in (begin, node.run):
        with contextlib.suppress(signals.Stopped):
          part()

  def _finish(self) -> None:
    """Reports completion, closes the node, and waits for its shutdown.

    In this order, so that a close that fails or hangs only causes a warning and
    delays no other node.
    """
    if self._coordinator is not None and self._plan.kind.phase is not None:
      self._coordinator.finish(self._plan.name)
    if (problem := self._close()) and self._coordinator is not None:
      with contextlib.suppress(Exception):  # The coordinator may have ended.
        self._coordinator.warn(self._plan.name, problem)
    if self._plan.kind.serves:
      # Others may need it until the launcher, with which it ends, has ended.
      self._shut_down.wait()

  @contextlib.contextmanager
  def _reporting_failure(self) -> Iterator[None]:
    """Reports an exception to the coordinator, closes the node, re-raises.

    The report precedes the close, which dependent nodes would report as
    failures of their own.
    """
    try:
      yield
    except BaseException as error:
      # A colocated node has reported its `NodeError`.
      is_new = not isinstance(error, (signals.Stopped, failures.NodeError))
      try:
        if is_new and self._coordinator is not None:
          self._coordinator.fail(failures.of_exception(self._plan.name, error))
        self.has_reported = self._coordinator is not None
      finally:
        self._stop.set()  # Ends all waits and threads of the node.
        self._close()
      raise

  @contextlib.contextmanager
  def _beside(
    self, node: node_lib.Node, plan: launcher.PlannedNode
  ) -> Iterator[node_lib.Node]:
    """Makes a colocated node and runs it in a thread until the block ends."""
    peers = self._context.peers
    runner = NodeRunner(plan, peers, beside=node, **self._settings)
    with failures.named(plan.name), runner._reporting_failure():
      made = runner._make()

    def run():
      try:
        with runner._reporting_failure():
          runner._work(made)
        runner._finish()
      except BaseException:
        if not runner.has_reported:
          raise

    thread = threading.Thread(target=run, name=plan.name, daemon=True)
    with shared_interpreter():
      thread.start()
      try:
        yield made
      finally:
        runner.shut_down()
        thread.join(_JOIN_SECONDS)
        if thread.is_alive():
          logging.warning('The thread of %s did not end.', plan.name)

  def _close(self) -> str:
    """Closes the node without raising; returns a warning or ''."""
    try:
      self._context.closing.close()
    except signals.Stopped:
      pass
    except BaseException as error:
      logging.exception('%s could not be closed.', self._plan.name)
      failure = failures.of_exception(self._plan.name, error)
      return failure.not_closed
    return ''

  @contextlib.contextmanager
  def _heartbeats(self, node: node_lib.Node) -> Iterator[None]:
    """Sends heartbeats in another thread during the block and once after.

    A failing heartbeat sets the stop signal, and its exception is raised at the
    end. An exception of the block takes precedence.
    """
    if self._coordinator is None:
      yield
      return
    ended, errors, run_stops = threading.Event(), [], threading.Event()

    def beat():
      try:
        while not ended.wait(reports.PERIOD_SECONDS):
          if node.report().phase == reports.STOPPING:
            run_stops.set()
            if self._plan.kind.phase is not None:
              self._stop.set()
      except BaseException as error:
        errors.append(error)
        self._stop.set()

    thread = threading.Thread(target=beat, name='heartbeat', daemon=True)
    thread.start()
    try:
      yield
    except BaseException:
      ended.set()
      thread.join(_JOIN_SECONDS)
      raise
    ended.set()
    thread.join()  # Calls have a time-out.
    if errors:
      raise errors[0]
    try:
      node.report()
    except Exception:
      # The coordinator may have ended before the node.
      if not (self._stop.is_set() or run_stops.is_set()):
        raise


@contextlib.contextmanager
def shared_interpreter() -> Iterator[None]:
  """Shortens the interpreter's thread switch interval while the block runs."""
  before = sys.getswitchinterval()
  sys.setswitchinterval(min(before, _SWITCH_SECONDS))
  try:
    yield
  finally:
    sys.setswitchinterval(before)
