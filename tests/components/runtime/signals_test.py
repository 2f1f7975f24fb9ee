"""Tests of the stop signal and of waits that check it."""

import threading
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
  return 'a sign from above'


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


def test_set_ends_a_wait_for_the_signal():
  stop = signals.StopSignal()
  call = replay_fixture.Call(stop.wait, 60)
  assert call.is_waiting(0.1)
  stop.set()
  assert call.result(1)


class TestLateSignal:
  def test_follows_later(self):
    first = signals.StopSignal()
    late = signals.LateSignal(first, 0.3)
    assert not late.is_set()
    first.set()
    since = time.monotonic()
    assert not late.is_set()
    late.check()
    assert not late.wait(0.01)
    assert late.wait(60)
    assert time.monotonic() - since >= 0.3
    assert late.is_set()
    with pytest.raises(signals.Stopped):
      late.check()

  def test_is_set_at_once_if_it_is_not_worth_it(self):
    first = signals.StopSignal()
    late = signals.LateSignal(first, 60, lambda: False)
    assert not late.is_set()
    first.set()
    assert late.is_set()

  def test_may_be_set_before(self):
    first = signals.StopSignal()
    late = signals.LateSignal(first, 60)
    call = replay_fixture.Call(late.wait, 60)
    assert call.is_waiting(0.1)
    late.set()
    assert call.result(1)
    assert not first.is_set()

  def test_ends_a_wait(self):
    first = signals.StopSignal()
    late = signals.LateSignal(first, 0.3)
    first.set()
    with pytest.raises(signals.Stopped):
      signals.wait_for(_never, _what, 60, late)


def test_returns_at_once_when_it_succeeds():
  slices = []

  def attempt(seconds):
    slices.append(seconds)
    return True

  signals.wait_for(attempt, _what, 60, signals.StopSignal())
  assert len(slices) == 1


def test_repeats_short_attempts():
  slices = []

  def attempt(seconds):
    slices.append(seconds)
    return len(slices) == 5

  signals.wait_for(attempt, _what, 60, signals.StopSignal())
  assert len(slices) == 5
  assert max(slices) <= 0.5  # So that the signal is noticed in time.


def test_success_counts_even_when_stopped():
  stop = signals.StopSignal()
  stop.set()
  signals.wait_for(lambda _: True, _what, 60, stop)


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
  assert str(error.value) == 'Waited 0.3 seconds for a sign from above.'


def test_time_out_is_not_early():
  calls = []

  def attempt(seconds):
    calls.append(time.monotonic())
    time.sleep(seconds)
    return False

  start = time.monotonic()
  with pytest.raises(TimeoutError):
    signals.wait_for(attempt, _what, 0.5, signals.StopSignal())
  assert time.monotonic() - start >= 0.5
  assert len(calls) > 1


def test_error_of_an_attempt_is_raised():
  def attempt(seconds):
    raise KeyError('lost')

  with pytest.raises(KeyError, match='lost'):
    signals.wait_for(attempt, _what, 60, signals.StopSignal())


def test_what_is_asked_for_only_when_it_is_over():
  """Calling it may be expensive."""
  asked = []
  arrived = threading.Event()
  timer = threading.Timer(0.3, arrived.set)
  timer.start()
  signals.wait_for(
    arrived.wait, lambda: asked.append(1), 60, signals.StopSignal()
  )
  timer.join()
  assert not asked


def test_stopped_is_no_subclass_of_a_time_out():
  """Catching one of the two must not swallow the other."""
  assert not issubclass(signals.Stopped, (TimeoutError, OSError))
