"""Time, as it passes; needs no TensorFlow."""

import time
from concurrent import futures


class Clock:
  """What tells time and waits.

  All that watches over a run asks one, so that its time-outs can be tried with
  another, whose time need not pass.
  """

  def __call__(self) -> float:
    """Returns seconds, since any moment."""
    return time.monotonic()

  def sleep(self, seconds: float) -> None:
    """Waits."""
    time.sleep(seconds)

  def wait_for(self, call: futures.Future, seconds: float) -> bool:
    """Waits for a call, but no longer; returns whether it is done."""
    return bool(futures.wait([call], timeout=seconds).done)


REAL = Clock()
