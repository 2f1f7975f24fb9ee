"""Tests of the background thread of a callback."""

import threading
import time

import pytest

from repertory.launch.coordination import callback_threads

_SECONDS = 30


class _Hook:
  """Callback that records its payloads, and can be blocked."""

  def __init__(self):
    self.payloads = []
    self.threads = set()
    self.may_go_on = threading.Event()
    self.may_go_on.set()
    self.is_in = threading.Event()

  def hold(self):
    self.may_go_on.clear()
    self.is_in.clear()

  def __call__(self, payload):
    self.threads.add(threading.current_thread())
    self.is_in.set()
    assert self.may_go_on.wait(_SECONDS)
    self.payloads.append(payload)


class _Clock:
  def __init__(self):
    self.now = 0.0

  def __call__(self):
    return self.now


@pytest.fixture(name='callback')
def _hook():
  made = _Hook()
  yield made
  made.may_go_on.set()


@pytest.fixture(name='clock')
def _clock():
  return _Clock()


class _Thread(callback_threads.CallbackThread):
  """Thread that records errors and warnings."""

  def __init__(self, should_continue=True, **settings):
    self.troubles, self.warnings = [], []

    def take_trouble(trouble):
      self.troubles.append(trouble)
      return should_continue

    super().__init__('hook 0', take_trouble, self.warnings.append, **settings)


@pytest.fixture(name='thread')
def _thread(clock):
  made = _Thread(clock=clock)
  yield made
  made.drop()


def _hold(callback, thread):
  """Blocks the thread in a call."""
  callback.hold()
  thread.call('first', callback, 'first')
  assert callback.is_in.wait(_SECONDS)


def test_calls_are_made_in_order_without_blocking(callback, thread):
  _hold(callback, thread)
  for number in range(5):
    thread.call('call', callback, number)
  assert callback.payloads == []
  assert thread.progress == 'hook 0 is in first, with 5 calls queued'
  assert not thread.wait_until_idle(0.01)
  callback.may_go_on.set()
  assert thread.wait_until_idle(_SECONDS)
  assert callback.payloads == ['first', 0, 1, 2, 3, 4]
  (caller,) = callback.threads
  assert caller is not threading.current_thread()


def test_payloads_are_joined_into_one_call(callback, thread):
  _hold(callback, thread)
  other = _Hook()
  for payload in 'ab':
    thread.call('call', callback, payload, join=''.join)
  thread.call('other', other, 'x', join=''.join)
  for payload in 'cde':
    thread.call('call', callback, payload, join=''.join)
  callback.may_go_on.set()
  assert thread.wait_until_idle(_SECONDS)
  # Not across a call of another kind, or they would change places.
  assert callback.payloads == ['first', 'ab', 'cde']
  assert other.payloads == ['x']


@pytest.mark.parametrize('error', [ValueError('bad'), SystemExit(3)])
@pytest.mark.parametrize('should_continue', [True, False])
def test_errors_of_a_call_are_reported(callback, error, should_continue):
  thread = _Thread(should_continue)

  def fail(payload):
    raise error

  _hold(callback, thread)
  thread.call('fail', fail, None)
  thread.call('call', callback, 'next')
  callback.may_go_on.set()
  thread.end('end', callback, 'last')
  thread.wait_until_idle(_SECONDS)
  (trouble,) = thread.troubles
  assert trouble.startswith('Traceback')
  assert trouble.strip().endswith(f'{type(error).__name__}: {error}')
  assert callback.payloads == (
    ['first', 'next', 'last'] if should_continue else ['first']
  )


def test_too_many_queued_bytes_are_an_error(callback, thread, monkeypatch):
  monkeypatch.setattr(callback_threads, '_MAX_BYTES', 100)
  _hold(callback, thread)
  for number in range(4):
    thread.call('call', callback, number, num_bytes=40)
  # The first two take 80 bytes, the others have no room.
  assert len(thread.troubles) == 2
  assert 'too slow: 2 calls' in thread.troubles[0]
  callback.may_go_on.set()
  assert thread.wait_until_idle(_SECONDS)
  # Now there is room again.
  _hold(callback, thread)
  for number in (2, 3):
    thread.call('call', callback, number, num_bytes=50)
  callback.may_go_on.set()
  assert thread.wait_until_idle(_SECONDS)
  assert callback.payloads == ['first', 0, 1, 'first', 2, 3]


def test_single_call_of_any_size_is_accepted(callback, thread, monkeypatch):
  monkeypatch.setattr(callback_threads, '_MAX_BYTES', 100)
  thread.call('call', callback, 'large', num_bytes=101)
  assert thread.wait_until_idle(_SECONDS)
  assert callback.payloads == ['large']
  assert not thread.troubles


def test_slowness_is_reported_once_while_it_lasts(callback, thread, clock):
  for _ in range(2):
    _hold(callback, thread)
    thread.call('call', callback, 0)
    for _ in range(4):
      clock.now += 6
      thread.call('call', callback, 0)
    callback.may_go_on.set()
    assert thread.wait_until_idle(_SECONDS)
    thread.call('call', callback, 0)
    assert thread.wait_until_idle(_SECONDS)
  assert thread.warnings == 2 * [
    'hook 0 is in first, with 2 calls queued, the first for 12 seconds: it is '
    'slow'
  ]
  assert thread.troubles == []


def test_ends_after_all_calls(callback, thread):
  _hold(callback, thread)
  thread.call('call', callback, 'second')
  thread.end('end', callback, 'last')
  thread.call('call', callback, 'too late')
  assert not thread.is_over
  callback.may_go_on.set()
  assert thread.wait_until_idle(_SECONDS)
  assert callback.payloads == ['first', 'second', 'last']
  (caller,) = callback.threads
  caller.join(_SECONDS)
  assert thread.is_over
  assert not caller.is_alive()


def test_dropped_one_makes_no_further_calls(callback, thread):
  _hold(callback, thread)
  thread.call('call', callback, 'second')
  thread.drop()
  assert thread.is_over
  callback.may_go_on.set()
  (caller,) = callback.threads
  caller.join(_SECONDS)
  assert not caller.is_alive()
  assert callback.payloads == ['first']


def test_idle_is_called_when_nothing_else_is():
  called = threading.Event()
  thread = _Thread(idle=called.set, idle_seconds=0.01)
  time.sleep(0.05)
  assert not called.is_set()  # Before the first call there is no thread.
  thread.call('call', lambda payload: None, None)
  assert called.wait(_SECONDS)
  thread.drop()
