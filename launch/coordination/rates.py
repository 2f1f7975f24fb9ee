"""Throughput of a run, and estimated time left."""

import collections
import time
from collections.abc import Callable

# Averaging window.
_SECONDS = 10.0

# Minimum time of learning before the time left is estimated.
_LEAST_SECONDS = 5.0


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

  Not while the run stands still, nor in the first seconds of learning,
  whose rate is that of acting alone or of compilation.
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
    # Since learning began.
    self._steady: Rates | None = None
    self._steady_since = 0.0

  def measure(
    self, steps: int, learner_steps: int, is_acting: bool
  ) -> dict[str, float | None]:
    """Returns the display figures of speed."""
    steps_rate, learner_rate = self._rates.measure(steps, learner_steps)
    left = self._estimate(steps, learner_steps)
    return {
      'steps_per_second': steps_rate,
      'learner_steps_per_second': learner_rate,
      'seconds_left': left if is_acting else None,
    }

  def _estimate(self, steps: int, learner_steps: int) -> float | None:
    if self._steady is None:
      if learner_steps == self._first_learner_step:
        return None
      self._steady, self._steady_since = Rates(self._clock), self._clock()
    (rate,) = self._steady.measure(steps)
    left = self._max_steps - steps
    seconds = self._clock() - self._steady_since
    if seconds < _LEAST_SECONDS or not rate or left <= 0:
      return None
    return left / rate
