"""Tests of `environments/adapters/extras.py`."""

import sys
import threading

from repertory.environments.adapters import extras


def test_one_thread_at_a_time():
  before = sys.stderr
  entered = threading.Event()

  def quiet():
    with extras.discarded_stderr():
      entered.set()

  thread = threading.Thread(target=quiet)
  with extras.discarded_stderr():
    thread.start()
    assert not entered.wait(0.2)
  thread.join(60)
  assert entered.is_set()
  assert sys.stderr is before
