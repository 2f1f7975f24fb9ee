"""Tests of terminals that are closed while something runs in them."""

import contextlib
import os
import signal
import threading

import pytest

from repertory.launch.platform import interrupts, terminal
from support.system import program, terminal_window

_SECONDS = 300
_TRAIN = (
  'train', '--env=catch', '--directory=run', '--config.jit_compile=false',
  '--evaluation_episodes=0',
)  # fmt: skip


def _send(number):
  signal.pthread_kill(threading.get_ident(), number)


@pytest.fixture(autouse=True)
def _handlers():
  numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
  before = {number: signal.getsignal(number) for number in numbers}
  yield
  assert {number: signal.getsignal(number) for number in numbers} == before


class TestCatching:
  @pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGHUP])
  def test_sets_the_stop_signal_and_its_number(self, number):
    with interrupts.catch_interrupts() as interruption:
      assert not interruption.is_set()
      _send(number)
      assert interruption.is_set()
      assert interruption.number == number

  def test_a_second_one_has_its_usual_effect(self):
    # It may be ignored if the tests were started in the background.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    with contextlib.ExitStack() as stack:
      stack.callback(signal.signal, signal.SIGINT, before)
      self._interrupt_twice()

  def _interrupt_twice(self):
    with interrupts.catch_interrupts() as interruption:
      _send(signal.SIGTERM)
      with pytest.raises(KeyboardInterrupt):
        _send(signal.SIGINT)
    assert interruption.number == signal.SIGTERM

  @pytest.mark.parametrize('first', [signal.SIGHUP, signal.SIGTERM])
  def test_further_hangups_do_nothing(self, first):
    """The kernel and the shell both send one when a terminal is closed."""
    with interrupts.catch_interrupts() as interruption:
      _send(first)
      for _ in range(3):
        _send(signal.SIGHUP)
      assert interruption.number == first

  def test_an_ignored_hangup_stays_ignored(self):
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
      with interrupts.catch_interrupts() as interruption:
        _send(signal.SIGHUP)
        assert not interruption.is_set()
      assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    finally:
      signal.signal(signal.SIGHUP, before)


class TestInsisting:
  def test_others_end_it_too(self):
    """Signals other than Ctrl-C end it, too."""
    number = signal.SIGTERM
    with pytest.raises(SystemExit) as caught, interrupts.raising_signals():
      _send(number)
      pytest.fail('It went on.')
    assert caught.value.code == interrupts.EXIT_BASE + number

  def test_further_hangups_do_not_disturb_the_end(self):
    ended = False
    with pytest.raises(SystemExit), interrupts.raising_signals():
      try:
        _send(signal.SIGHUP)
      finally:
        _send(signal.SIGHUP)
        ended = True
    assert ended

  def test_raises_at_the_end_what_was_dropped(self):
    went_on = False
    with pytest.raises(KeyboardInterrupt), interrupts.raising_signals():
      with contextlib.suppress(KeyboardInterrupt):
        _send(signal.SIGINT)
      went_on = True
    assert went_on

  def test_raises_it_instead_of_a_converted_exception(self):
    with (
      pytest.raises(KeyboardInterrupt) as caught,
      interrupts.raising_signals(),
    ):
      try:
        _send(signal.SIGINT)
      except KeyboardInterrupt as error:
        raise SystemError('an exception was set') from error
    assert isinstance(caught.value.__cause__, SystemError)


class TestLostReaders:
  @pytest.mark.parametrize('open_both', [os.openpty, os.pipe])
  def test_finds_them(self, open_both):
    reader, writer = open_both()
    try:
      assert not terminal.is_lost(writer)
      os.close(reader)
      assert terminal.is_lost(writer)
    finally:
      os.close(writer)


_in_thread_and_processes = pytest.mark.parametrize(
  'flags',
  [(), ('--topology=distributed', '--lp_launch_type=local_mp')],
  ids=['single', 'processes'],
)


def _check_saved(directory):
  assert (directory / 'run' / 'checkpoints' / '00000001').is_dir()


@pytest.mark.chaos
@_in_thread_and_processes
def test_a_window_that_is_closed_ends_the_run_with_a_checkpoint(
  tmp_path, flags
):
  window = terminal_window.Terminal(
    tmp_path, *_TRAIN, '--steps=1000000', *flags
  )
  try:
    program.wait_for_learning(window, tmp_path / 'run', _SECONDS)
    window.close_window()
    assert window.wait(_SECONDS) == 128 + signal.SIGHUP
  finally:
    window.kill()
  _check_saved(tmp_path)
