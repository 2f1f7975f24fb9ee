"""Tests of the stop signal and of waits that check it."""

import time

import pytest

from repertory.components.runtime import signals
from support.replay import replay_fixture


@pytest.fixture(autouse=True)
def _no_threads_left():
  with replay_fixture.no_threads_left():
    yield


def _never(seconds):
  time.sleep(seconds)
  return False


def _what():
  return 'a heartbeat'


def test_stop_signal():
  stop = signals.StopSignal()
  assert not stop.is_set()
  assert not stop.wait(0.01)
  stop.check()
  stop.set()
  stop.set()
  assert stop.is_set()
  assert stop.wait(60)
  with pytest.raises(signals.Stopped):
    stop.check()


class TestDelayed:
  def test_follows_later(self):
    first = signals.StopSignal()
    late = signals.delayed(first, 0.3)
    first.set()
    since = time.monotonic()
    assert not late.wait(0.01)
    late.check()
    assert late.wait(60)
    assert time.monotonic() - since >= 0.29
    with pytest.raises(signals.Stopped):
      late.check()

  def test_is_set_at_once_if_it_is_not_worth_it(self):
    first = signals.StopSignal()
    late = signals.delayed(first, 3600, lambda: False)
    assert not late.wait(0.1)
    first.set()
    assert late.wait(60)

  def test_may_be_set_before(self):
    first = signals.StopSignal()
    late = signals.delayed(first, 3600)
    late.set()
    assert not first.is_set()
    first.set()  # Ends its thread.


def test_repeats_short_attempts():
  slices = []

  def attempt(seconds):
    slices.append(seconds)
    return len(slices) == 5

  signals.wait_for(attempt, _what, 60, signals.StopSignal())
  assert len(slices) == 5
  assert max(slices) <= 0.5  # So that the signal is noticed in time.


def test_signal_ends_a_wait():
  stop = signals.StopSignal()
  call = replay_fixture.Call(signals.wait_for, _never, _what, 60, stop)
  assert call.is_waiting()
  stop.set()
  with pytest.raises(signals.Stopped):
    call.result(1)


def test_time_out_says_what_was_waited_for():
  call = replay_fixture.Call(
    signals.wait_for, _never, _what, 0.3, signals.StopSignal()
  )
  with pytest.raises(TimeoutError) as error:
    call.result(5)
  assert str(error.value) == 'Waited 0.3 seconds for a heartbeat.'
