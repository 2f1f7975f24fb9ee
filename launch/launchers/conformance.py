"""Conformance tests of launchers, to be inherited by tests of your own.

    class TestMyLauncher(conformance.LauncherConformance):
      def make_launcher(self): ...

Run them with pytest: they use its `tmp_path` fixture. Needs no TensorFlow, so
that the node processes of the tests start fast.
"""

import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import psutil

from repertory.launch.coordination import kinds
from repertory.launch.launchers import calls
from repertory.launch.launchers import launcher as launcher_lib
from repertory.launch.nodes import node

# Processes start slowly on a busy machine.
_SECONDS = 120.0

_SERVICE = kinds.REPLAY.name
_CALLER = kinds.ACTOR.numbered(0)
_FAILING = kinds.ACTOR.numbered(1)


class _Service(node.Node):
  """Serves calls until it is stopped; calls no coordinator."""

  def __init__(self, context: node.Context):
    super().__init__(context)
    self._context = context
    print(f'{self.name} starts generation {context.generation}', flush=True)

  @property
  def served(self):
    context = self._context
    return {
      'double': lambda x: 2 * x,
      'context': lambda: (context.generation, context.can_restart),
    }


class _Caller(_Service):
  """Calls the service once, then ends."""

  def run(self):
    peer = self._context.peers[_SERVICE]
    calls.wait_for_server(peer)
    doubled = peer.double(np.arange(3.0))
    if doubled.tolist() != [0, 2, 4]:
      raise AssertionError(doubled)


class _Failing(_Service):
  def run(self):
    raise ValueError('This node fails.')


class LauncherConformance:
  """Tests of the contract of `launchers.launcher.Launcher`."""

  def make_launcher(self) -> launcher_lib.Launcher:
    """Makes the launcher."""
    raise NotImplementedError

  def test_runs_a_graph(self, tmp_path):
    launcher, planned = self.make_launcher(), launcher_lib.NodeGraph(_SECONDS)
    planned.add(launcher_lib.PlannedNode(_SERVICE, _Service))
    planned.add(launcher_lib.PlannedNode(_CALLER, _Caller, [_SERVICE]))
    planned.add(launcher_lib.PlannedNode(_FAILING, _Failing))
    threads = threading.active_count()
    with launcher.launch(planned, str(tmp_path)) as workers:
      assert workers.names == [_SERVICE, _CALLER, _FAILING]
      _wait(lambda: not workers.clients_alive(), 'the clients to end')
      assert set(workers.find_ended()) == {_CALLER, _FAILING}
      for name in (_CALLER, _FAILING):
        failure = workers.failure_of(name)
        assert failure.node == name
        assert not failure.is_lost, failure.cause + workers.log_of(name)
      report = workers.failure_of(_FAILING).cause + workers.log_of(_FAILING)
      assert 'This node fails.' in report, report
      self._check_service(workers, launcher.can_restart)
      if launcher.can_restart:
        self._check_restart(workers)
      else:
        assert workers.kill(_SERVICE) is None
      service = workers.client(_SERVICE)
      call = service.futures.shutdown()
      workers.wait_for_end(_SECONDS)
      call.cancel()  # The server may end without replying.
      assert not workers.is_alive(_SERVICE), 'A shut-down service must end.'
    _wait(
      lambda: (
        not psutil.Process().children(recursive=True)
        and threading.active_count() <= threads
      ),
      'all processes and threads of the nodes to end',
    )

  def _check_service(self, workers, can_restart):
    assert workers.is_alive(_SERVICE)
    service = workers.client(_SERVICE)
    assert service.futures.double(21).result(_SECONDS) == 42
    context = service.futures.context().result(_SECONDS)
    assert context == (0, can_restart), f'got (generation, restart) {context}'
    if can_restart:  # Before stacks of threads fill the log.
      assert f'{_SERVICE} starts generation 0' in workers.log_of(_SERVICE)
    stacks = '\n'.join(workers.stacks([_SERVICE]).values())
    assert stacks, 'There must be stacks of threads of a node.'

  def _check_restart(self, workers):
    assert workers.kill(_SERVICE) == _SERVICE
    _wait(lambda: not workers.is_alive(_SERVICE), 'the service to be killed')
    assert workers.failure_of(_SERVICE).is_lost
    for name in (_SERVICE, _CALLER):
      workers.restart(name)
      assert workers.is_alive(name)
    # The client finds the restarted service.
    _wait(lambda: not workers.is_alive(_CALLER), 'the client to end')
    assert not workers.failure_of(_CALLER).is_lost
    assert 'AssertionError' not in workers.log_of(_CALLER)
    service = workers.client(_SERVICE)
    generation, _ = service.futures.context().result(_SECONDS)
    assert generation == 1, f'The generation must be 1; got {generation}.'


def _wait(condition: Callable[[], Any], what: str) -> None:
  deadline = time.monotonic() + _SECONDS
  while not condition():
    assert time.monotonic() < deadline, f'Waited {_SECONDS:g} s for {what}.'
    time.sleep(0.05)
