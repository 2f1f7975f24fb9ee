"""Tests of `environments/rendering/quieting.py`."""

import sys
import threading
import warnings

from repertory.environments.rendering import quieting

_SECONDS = 60


def test_threads_restore_the_original(monkeypatch):
  quiet = quieting.discarded_stderr
  monkeypatch.setattr(sys, 'stderr', sys.stderr)  # Restored if the test fails.
  before = sys.stderr, list(warnings.filters)
  first_is_in, second_is_in, first_is_out = (
    threading.Event() for _ in range(3)
  )

  def be_first():
    with quiet():
      first_is_in.set()
      second_is_in.wait(0.3)  # Times out, because the lock is held.
    first_is_out.set()

  def be_second():
    first_is_in.wait(_SECONDS)
    with quiet():
      second_is_in.set()
      first_is_out.wait(_SECONDS)

  threads = [threading.Thread(target=be) for be in (be_first, be_second)]
  for thread in threads:
    thread.start()
  for thread in threads:
    thread.join(_SECONDS)
  assert (sys.stderr, list(warnings.filters)) == before
