"""Clocks that tests can replace; needs no TensorFlow."""

import time
from concurrent import futures


class Clock:
  """Monotonic clock; tests of time-outs use a simulated one."""

  def __call__(self) -> float:
    """Returns seconds since an arbitrary point in time."""
    return time.monotonic()

  def sleep(self, seconds: float) -> None:
    """Sleeps."""
    time.sleep(seconds)

  def wait_for(self, call: futures.Future, seconds: float) -> bool:
    """Waits for a call for at most `seconds`; returns whether it is done."""
    return bool(futures.wait([call], timeout=seconds).done)


REAL = Clock()
