"""Watchdogs for stalls, and stack traces."""

import contextlib
import faulthandler
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

# Time limit of starts, which take minutes on a busy machine. Processes that end
# meanwhile are detected at once.
START_SECONDS = 300.0


@contextlib.contextmanager
def watching(
  progress: Callable[[], Any],
  stall_seconds: float,
  on_stall: Callable[[float], None],
) -> Iterator[None]:
  """Detects stalls in a background thread while the block runs.

  Args:
    progress: Function whose value changes with progress.
    stall_seconds: Maximum time without a change.
    on_stall: Called once, with the seconds since the last change.
  """
  ended = threading.Event()
  period = min(1.0, stall_seconds / 4)

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


def stacks() -> str:
  """Returns the stack traces of all threads of this process."""
  with tempfile.TemporaryFile('w+') as file:
    faulthandler.dump_traceback(file, all_threads=True)
    file.seek(0)
    return file.read()
