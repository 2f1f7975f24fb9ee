"""Calls of the coordinator by who launched it."""

import dataclasses
from collections.abc import Callable
from typing import Any, NoReturn

from repertory.components import callers, signals
from repertory.launch import failures
from repertory.launch.coordination import kinds
from repertory.launch.host import clocks, watchdog
from repertory.launch.launchers import calls, launcher

POLL_SECONDS = 0.1

# The coordinator answers at once, when it has started.
_ANSWER_TIMEOUT_SECONDS = 30

_NAME = kinds.COORDINATOR.name


class CoordinatorCalls:
  """Calls the coordinator, which may have died, or hang.

  Attributes:
    is_lost: Whether it did so in a call.
  """

  def __init__(
    self,
    workers: launcher.Workers,
    interruption: signals.StopSignal,
    clock: clocks.Clock,
  ):
    """Calls nobody yet.

    Args:
      workers: The nodes, of which the coordinator is one.
      interruption: Ends waits, though not at once.
      clock: By which it waits.
    """
    self.is_lost = False
    self._workers = workers
    self._interruption = interruption
    self._clock = clock
    self._client: Any = None  # When it is placed.

  def wait_for_start(self, show: Callable[[], None]) -> bool:
    """Waits until the coordinator takes calls.

    Args:
      show: Called meanwhile, now and then.

    Returns:
      False if it was interrupted before, and killed. A thread cannot be: it is
      waited for all the same, or nobody could tell the others to end.
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
        self._client = calls.SignedClient(
          self._workers.client(_NAME),
          callers.Caller('launcher', token=self._workers.program.token),
        )
      return self._client and calls.is_listening(self._client)

    self._wait_for(is_settled, watchdog.START_SECONDS, 'start')
    return not is_killed

  def call(self, method: str, *arguments: Any) -> Any:
    """Calls a method and waits for what it returns.

    Raises:
      failures.NodeError: If the coordinator has died, or does not answer.
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
