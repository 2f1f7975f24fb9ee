"""Tests of `components/gossip/mailbox.py`."""

import threading

import numpy as np
import pytest

from repertory.components.gossip import mailbox
from repertory.components.runtime import signals


def _vector(value):
  return np.full([2], value, np.float32)


def test_newest_alone_is_read_and_once():
  box = mailbox.Mailbox(['a', 'b'])
  box.put('b', 1, _vector(1))
  box.put('a', 5, _vector(5))
  box.put('b', 2, _vector(2))
  read = box.take_unread()
  assert [message.version for message in read] == [5, 2]
  assert box.take_unread() == []
  assert box.num_messages == 3


def test_waits_for_the_version_of_all():
  box = mailbox.Mailbox(['a', 'b'], keeps_all=True)
  for version in (1, 2, 3):
    box.put('a', version, _vector(version))
  timer = threading.Timer(0.1, box.put, ['b', 2, _vector(20)])
  timer.start()
  found = box.wait_for(2, 10.0, signals.StopSignal())
  assert [message.vector[0] for message in found] == [2, 20]
  timer.join()
  # Later messages are kept.
  box.put('b', 3, _vector(30))
  found = box.wait_for(3, 10.0, signals.StopSignal())
  assert [message.vector[0] for message in found] == [3, 30]


def test_who_has_ended_is_not_waited_for():
  box = mailbox.Mailbox(['a', 'b'], keeps_all=True)
  box.put('a', 2, _vector(2))
  box.put('b', 1, _vector(10))
  box.end('b', 1)
  stop = signals.StopSignal()
  assert [m.version for m in box.wait_for(2, 10.0, stop)] == [2]


def test_time_out_names_who_is_missing():
  box = mailbox.Mailbox(['a', 'b', 'c'], keeps_all=True)
  box.put('b', 4, _vector(0))
  with pytest.raises(TimeoutError, match='for a, c to reach learner step 4'):
    box.wait_for(4, 0.1, signals.StopSignal())


def test_stop_ends_the_wait():
  box, stop = mailbox.Mailbox(['a'], keeps_all=True), signals.StopSignal()
  stop.set()
  with pytest.raises(signals.Stopped):
    box.wait_for(4, 60.0, stop)


def test_strangers_are_refused():
  box = mailbox.Mailbox(['a'])
  with pytest.raises(ValueError, match=r"one of \['a'\], got 'z'"):
    box.put('z', 1, _vector(1))
