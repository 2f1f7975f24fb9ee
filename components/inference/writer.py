"""Hands the timesteps of all lanes to their adders."""

import collections
import contextlib
import threading
import time
from collections.abc import Callable

from repertory.components import signals
from repertory.components.inference import lanes

_SLICE_SECONDS = 0.2


class Writer:
  """One thread, in which the adders may wait for the rate limiter.

  A lane that is too far ahead of its adder is served no more: so the limiter
  holds back the actors, and the server goes on for all others.
  """

  def __init__(self, notify: Callable[[], None]):
    """Starts the thread.

    Args:
      notify: Called after a job, in the thread, where the server waits for it.
    """
    self._notify = notify
    self._jobs: collections.deque[lanes.Job] = collections.deque()
    self._wanted = threading.Event()
    self._closed = False
    self._busy_since = 0.0
    self._seconds = 0.0
    self.error: BaseException | None = None
    self._thread = threading.Thread(
      target=self._run, name='inference_writer', daemon=True
    )
    self._thread.start()

  def submit(self, job: lanes.Job) -> None:
    """Puts a job in line."""
    job.lane.submitted += 1
    self._jobs.append(job)
    self._wanted.set()

  def seconds(self) -> float:
    """Returns how long adders have been at work or waiting, in all."""
    since = self._busy_since
    return self._seconds + (time.monotonic() - since if since else 0.0)

  def close(self, timeout_seconds: float = 5.0) -> None:
    """Ends the thread, after the job in hand; adders in line are closed."""
    self._closed = True
    self._wanted.set()
    self._thread.join(timeout_seconds)
    for job in self._jobs:
      if job.timestep is None:
        with contextlib.suppress(Exception):  # The server has ended.
          job.lane.adder.close()

  def _run(self) -> None:
    while not self._closed:
      self._wanted.wait(_SLICE_SECONDS)
      self._wanted.clear()
      while self._jobs and not self._closed:
        job = self._jobs.popleft()
        self._busy_since = time.monotonic()
        try:
          self._work(job)
        except signals.Stopped:
          self._closed = True
        except BaseException as error:  # Raised in the server's thread.
          self.error = error
          self._closed = True
        self._seconds += time.monotonic() - self._busy_since
        self._busy_since = 0.0
        job.lane.completed += 1
        if job.lane.is_held or job.timestep is None or self._closed:
          self._notify()

  def _work(self, job: lanes.Job) -> None:
    lane = job.lane
    if job.timestep is None:
      lane.adder.close()
    elif lane.is_closed:
      pass  # Of a dead actor nothing more is kept.
    elif job.action is None:
      lane.adder.add_first(job.timestep)
    else:
      lane.written_version = job.version
      lane.adder.add(job.action, job.timestep, job.extras)
