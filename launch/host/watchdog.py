"""Notices that nothing goes on."""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from repertory.launch.host import interrupts

# How long what is being started may take, which on a busy machine is minutes.
# What dies meanwhile is noticed at once.
START_SECONDS = 300.0

# How often it looks, at most and at least.
_LONGEST_SECONDS = 1.0
_LOOKS_PER_STALL = 4


@contextlib.contextmanager
def watching(
  progress: Callable[[], Any],
  stall_seconds: float,
  on_stall: Callable[[float], None],
) -> Iterator[None]:
  """Watches from a thread of its own while the block runs.

  Args:
    progress: Returns what changes when something goes on.
    stall_seconds: For how long it may stay the same.
    on_stall: Called once, with that time.
  """
  ended = threading.Event()
  period = min(_LONGEST_SECONDS, stall_seconds / _LOOKS_PER_STALL)

  def watch():
    last, since = progress(), time.monotonic()
    while not ended.wait(period):
      now = progress()
      if now != last:
        last, since = now, time.monotonic()
      elif time.monotonic() - since > stall_seconds:
        on_stall(time.monotonic() - since)
        return

  thread = threading.Thread(target=watch, name='watchdog', daemon=True)
  thread.start()
  try:
    yield
  finally:
    ended.set()
    thread.join()


@contextlib.contextmanager
def limited(seconds: float, what: str) -> Iterator[None]:
  """Ends a block of Python that takes too long; in the main thread alone.

  Args:
    seconds: How long it may take.
    what: Is waited for, for the error.

  Raises:
    TimeoutError: If it takes longer.
  """
  with interrupts.raising_on_demand() as demand:
    error = TimeoutError(f'Waited {seconds:g} seconds for {what}.')
    with watching(lambda: None, seconds, lambda waited: demand(error)):
      yield
