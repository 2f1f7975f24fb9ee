"""Variables of stated versions, for those who act beside the learner."""

from collections.abc import Callable, Sequence

import tensorflow as tf

from repertory.components import signals
from repertory.components.variables import published


class ScheduledVariables(published.PublishedVariables):
  """Copies what a learner of the same process has published, by a schedule.

  Which variables act at which step then does not depend on who is faster: they
  change when a round begins, and it waits until there are those that it is to
  act with.
  """

  def __init__(
    self,
    publisher: published.Publisher,
    variables: Sequence[tf.Variable],
    *,
    period: int,
    first_round: int = 0,
    version_of: Callable[[int], int],
    timeout_seconds: float,
    stop: signals.StopSignal,
  ):
    """Keeps the parts.

    Args:
      publisher: What the learner publishes to; keeps as many versions as it may
        be ahead of who acts.
      variables: Take the values, in the same order.
      period: Steps of a round, at least 1.
      first_round: The round that the first step begins.
      version_of: Gives the version for a round, from 0; never a lower one than
        for the round before.
      timeout_seconds: How long a wait may last.
      stop: Ends a wait.
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
    """Takes over the variables of a round that begins.

    Args:
      wait: Whether this comes before the first step; else after a step.

    Raises:
      LookupError: If the version is not kept any more.
      signals.Stopped: If a wait was ended.
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
