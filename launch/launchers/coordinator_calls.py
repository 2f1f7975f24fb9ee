"""The launcher's calls to the coordinator."""

import dataclasses
from collections.abc import Callable
from typing import Any, NoReturn

from repertory.components.runtime import callers, signals
from repertory.launch.coordination import kinds
from repertory.launch.experiments import failures
from repertory.launch.launchers import calls, launcher
from repertory.launch.platform import clocks, watchdog

POLL_SECONDS = 0.1

# Once started, the coordinator replies at once.
_ANSWER_TIMEOUT_SECONDS = 30

_NAME = kinds.COORDINATOR.name


class CoordinatorCalls:
  """Client of the coordinator that detects its death and hangs.

  Attributes:
    is_lost: Whether the coordinator died or hung in a call.
  """

  def __init__(
    self,
    workers: launcher.Workers,
    interruption: signals.StopSignal,
    clock: clocks.Clock,
  ):
    """Makes no calls yet.

    Args:
      workers: The nodes, including the coordinator.
      interruption: Stop signal that limits waits to the answer time-out.
      clock: Clock of waits and time-outs.
    """
    self.is_lost = False
    self._workers = workers
    self._interruption = interruption
    self._clock = clock
    self._client: Any = None  # Set once the coordinator is placed.

  def wait_for_start(self, show: Callable[[], None]) -> bool:
    """Waits until the coordinator accepts calls.

    Args:
      show: Called repeatedly during the wait.

    Returns:
      False if interrupted before, in which case the coordinator was killed. A
      thread cannot be killed; it is waited for nevertheless, since only the
      coordinator can stop the other nodes.
    """
    is_killed = False

    def is_settled():
      nonlocal is_killed
      if self._interruption.is_set():
        is_killed = self._workers.kill(_NAME) is not None
        if is_killed:
          return True
      show()
      self._clock.sleep(POLL_SECONDS)
      if self._client is None and self._workers.is_placed(_NAME):
        self._client = calls.AuthenticatedClient(
          self._workers.client(_NAME),
          callers.Caller('launcher', token=self._workers.program.token),
        )
      return self._client and calls.is_listening(self._client)

    self._wait_for(is_settled, watchdog.START_SECONDS, 'start')
    return not is_killed

  def call(self, method: str, *arguments: Any) -> Any:
    """Calls a method and returns its result.

    Raises:
      failures.NodeError: If the coordinator has died or does not reply.
    """
    call = getattr(self._client.futures, method)(*arguments)
    try:
      self._wait_for(
        lambda: self._clock.wait_for(call, POLL_SECONDS),
        _ANSWER_TIMEOUT_SECONDS,
      )
      return call.result()
    finally:
      call.cancel()

  def _wait_for(
    self, is_ready: Callable[[], Any], seconds: float, what: str = 'answer'
  ) -> None:
    start = self._clock()
    interrupted_at = None
    while not is_ready():
      if not self._workers.is_alive(_NAME):
        failure = self._workers.failure_of(_NAME)
        details = self._workers.log_of(_NAME)
        self._lose(dataclasses.replace(failure, details=details))
      if self._interruption.is_set():
        interrupted_at = interrupted_at or self._clock()
        if self._clock() - interrupted_at > _ANSWER_TIMEOUT_SECONDS:
          cause = 'It did not answer when interrupted.'
          self._lose(failures.Failure(_NAME, cause))
      if self._clock() - start > seconds:
        cause = f'It did not {what} within {seconds:g} seconds.'
        self._lose(failures.Failure(_NAME, cause, is_lost=True))

  def _lose(self, failure: failures.Failure) -> NoReturn:
    self.is_lost = True
    raise failures.NodeError(failure)
