"""What the scripts of all peers measure with."""

import json
import time

# Of the steps, these come before the clock is started.
_WARM_UP_SHARE = 0.2


class Clock:
  """Measures steps per second from the end of the warm-up on."""

  def __init__(self, steps):
    self._start = _WARM_UP_SHARE * steps
    self._began = None
    self._steps = 0

  def count(self, steps):
    """Takes how many steps there were until now."""
    self._steps = steps
    if self._began is None and steps >= self._start:
      self._began = steps, time.perf_counter()

  def print_rate(self):
    """Prints what the benchmark reads, at the end of the run."""
    if self._began is None:
      raise RuntimeError('It ended before the clock was started.')
    steps, began = self._began
    rate = (self._steps - steps) / (time.perf_counter() - began)
    print(json.dumps({'steps_per_second': rate}))
