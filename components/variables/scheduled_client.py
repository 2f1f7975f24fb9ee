"""Variable client with a fixed schedule of versions."""

from collections.abc import Callable, Sequence

import tensorflow as tf

from repertory.components.runtime import signals
from repertory.components.variables import local_client


class ScheduledVariableClient(local_client.LocalVariableClient):
  """Copies variables that a learner in the same process publishes, on schedule.

  So the version at each step does not depend on thread speeds: variables change
  at the start of a round, which waits for its scheduled version.
  """

  def __init__(
    self,
    publisher: local_client.Publisher,
    variables: Sequence[tf.Variable],
    *,
    period: int,
    first_round: int = 0,
    version_of: Callable[[int], int],
    timeout_seconds: float,
    stop: signals.StopSignal,
  ):
    """Initializes the client.

    Args:
      publisher: Publisher of the learner; keeps as many versions as the learner
        may be ahead of the actors.
      variables: Targets of the copies, in the same order.
      period: Steps per round, at least 1.
      first_round: Index of the round of the first step.
      version_of: Returns the version for a round, from 0; must not decrease.
      timeout_seconds: Timeout of a wait.
      stop: Signal that ends a wait.
    """
    if period < 1:
      raise ValueError(f'period must be at least 1, got {period}.')
    super().__init__(publisher, variables)
    self._period = period
    self._version_of = version_of
    self._timeout_seconds = timeout_seconds
    self._stop = stop
    self._num_steps = first_round * period

  def update(self, wait: bool = False) -> None:
    """Applies the scheduled variables at the start of a round.

    Args:
      wait: Whether this call precedes the first step; other calls follow a
        step.

    Raises:
      LookupError: If the version is no longer kept.
      signals.Stopped: If the stop signal was set during a wait.
      TimeoutError: If a wait was too long.
    """
    if not wait:
      self._num_steps += 1
    if self._num_steps % self._period:
      return
    version = self._version_of(self._num_steps // self._period)
    if version == self.version:
      return
    signals.wait_for(
      lambda seconds: self._try_to_take(version, seconds),
      lambda: f'version {version} of the variables from the learner',
      self._timeout_seconds,
      self._stop,
    )

  def _try_to_take(self, version: int, seconds: float) -> bool:
    snapshot = self._publisher.wait_for(version, seconds)
    if snapshot is None:
      return False
    self._take(snapshot)
    return True
