"""How fast a run goes, lately."""

import collections
import time
from collections.abc import Callable

# Over how much time.
_SECONDS = 10.0

# How long learning goes on before it can be told how long it will.
_LEAST_SECONDS = 5.0


class Rates:
  """Steps per second, of several kinds, over the last seconds."""

  def __init__(self, clock: Callable[[], float] = time.monotonic):
    self._clock = clock
    self._history: collections.deque = collections.deque()

  def measure(self, *counts: int) -> list[float]:
    """Returns how many a second there were of each.

    Args:
      *counts: How many of each kind so far; always the same kinds.
    """
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
  """How fast a run goes, and how long it has to go if that can be known.

  That is not before learning has gone on for some seconds: until then it is
  acting alone, or compiling, whose speed is measured. Nor while nothing goes
  on.
  """

  def __init__(
    self,
    max_steps: int,
    learner_steps: int,
    clock: Callable[[], float] = time.monotonic,
  ):
    """Knows nothing yet.

    Args:
      max_steps: Environment steps at which the run ends.
      learner_steps: Updates before this run.
      clock: Tells seconds.
    """
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
    """Returns what the display shows of it, by its names.

    Args:
      steps: Environment steps so far.
      learner_steps: Updates so far.
      is_acting: Whether there are steps to take.
    """
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
