"""Throughput of a run, and estimated time left."""

import collections
import time
from collections.abc import Callable

# Averaging window, and least time of learning before an estimate.
_SECONDS = 10.0


class Rates:
  """Moving averages of several rates per second."""

  def __init__(self, clock: Callable[[], float] = time.monotonic):
    self._clock = clock
    self._history: collections.deque = collections.deque()

  def measure(self, *counts: int) -> list[float]:
    """Returns the rate per second of each count."""
    now = self._clock()
    self._history.append((now, counts))
    while now - self._history[0][0] > _SECONDS and len(self._history) > 2:
      self._history.popleft()
    then, before = self._history[0]
    seconds = now - then
    return [
      (count - old) / seconds if seconds else 0.0
      for count, old in zip(counts, before)
    ]


class Speed:
  """Steps per second of a run, and an estimate of the time left.

  Not while the run stands still, nor in the first seconds of learning, whose
  rate is that of acting alone or of compilation.
  """

  def __init__(
    self,
    max_steps: int,
    learner_steps: int,
    clock: Callable[[], float] = time.monotonic,
  ):
    self._max_steps = max_steps
    self._first_learner_step = learner_steps
    self._clock = clock
    self._rates = Rates(clock)
    self._learns_since: float | None = None

  def measure(
    self, steps: int, learner_steps: int, is_acting: bool
  ) -> dict[str, float | None]:
    """Returns the display figures of speed."""
    rate, learner_rate = self._rates.measure(steps, learner_steps)
    if self._learns_since is None and learner_steps > self._first_learner_step:
      self._learns_since = self._clock()
    is_steady = (
      self._learns_since is not None
      and self._clock() - self._learns_since >= _SECONDS
    )
    left = self._max_steps - steps
    is_known = is_acting and is_steady and rate > 0 and left > 0
    return {
      'steps_per_second': rate,
      'learner_steps_per_second': learner_rate,
      'seconds_left': left / rate if is_known else None,
    }
