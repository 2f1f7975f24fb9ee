"""Handling of Ctrl-C, SIGTERM and SIGHUP."""

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

from repertory.components.runtime import signals

_NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_DEMAND = signal.SIGUSR2

# Exit code of a process that a signal ended, minus the signal number.
EXIT_BASE = 128

# Signals that a terminal sends to all its processes.
TERMINAL_SIGNALS = (signal.SIGINT, signal.SIGHUP)


class Interruption(signals.StopSignal):
  """Stop signal with the number of the operating-system signal that set it."""

  number: int | None = None


@contextlib.contextmanager
def catch_interrupts() -> Iterator[Interruption]:
  """Turns the first SIGINT, SIGTERM or SIGHUP into a stop signal.

  A second SIGINT or SIGTERM has its usual effect. Further SIGHUPs are ignored:
  when a terminal closes, the kernel sends one and the shell another. If SIGHUP
  is ignored already, as with `nohup`, it stays ignored. Works only in the main
  thread, where Python handles signals; elsewhere nothing is caught.
  """
  interruption, old_handlers = Interruption(), {}

  def handle(number, frame):
    del frame
    if interruption.number is None:
      interruption.number = number
    interruption.set()
    for number in (signal.SIGINT, signal.SIGTERM):
      if number in old_handlers:
        signal.signal(number, old_handlers[number])

  with _handled(handle, *_NUMBERS, old_handlers=old_handlers):
    yield interruption


@contextlib.contextmanager
def exiting_on_interrupt() -> Iterator[None]:
  """Lets Ctrl-C exit the process immediately, while there is nothing to save.

  An exception would pass through imports, which may convert or drop it.
  """
  try:
    errors = os.dup(2)  # That is redirected while TensorFlow is imported.
  except OSError:  # It is closed.
    errors = os.open(os.devnull, os.O_WRONLY)

  def leave(number, frame):
    del frame
    os.write(errors, b'repertory: interrupted\n')
    os._exit(EXIT_BASE + number)

  try:
    with _handled(leave, signal.SIGINT):
      yield
  finally:
    os.close(errors)


@contextlib.contextmanager
def raising_signals() -> Iterator[Callable[[], bool]]:
  """Ensures that signals end the block, even if their exception is lost.

  Ctrl-C raises KeyboardInterrupt, and SIGTERM and SIGHUP raise SystemExit.
  Finalizers and some callbacks of TensorFlow drop or convert exceptions. So it
  is raised again when the block ends. An ignored SIGHUP stays ignored, and
  further ones have no effect. Does nothing outside the main thread.

  Yields:
    A function that returns whether a signal was received, for loops to poll.
  """
  received = []

  def handle(number, frame):
    del frame
    received.append(number)
    if number != signal.SIGHUP or len(received) == 1:
      raise _exception_of(number)

  try:
    with _handled(handle, *_NUMBERS):
      yield lambda: bool(received)
  except Exception as error:
    if received:
      raise _exception_of(received[0]) from error
    raise
  if received:
    raise _exception_of(received[0])


def _exception_of(number: int) -> BaseException:
  if number == signal.SIGINT:
    return KeyboardInterrupt()
  return SystemExit(EXIT_BASE + number)


def is_hangup_ignored() -> bool:
  """Returns whether this process ignores SIGHUP, as under `nohup`."""
  return signal.getsignal(signal.SIGHUP) == signal.SIG_IGN


@contextlib.contextmanager
def interruptible() -> Iterator[Callable[[BaseException], None]]:
  """Yields a function that raises an exception in the main thread.

  It does so as soon as that thread runs Python code or is in a call that a
  signal interrupts. Not all native code supports that; Reverb does not. Does
  nothing if the block is in another thread.
  """
  raised, thread = [], threading.get_ident()

  def handle(number, frame):
    del number, frame
    if raised:
      raise raised.pop()

  def demand(error: BaseException) -> None:
    raised.append(error)
    signal.pthread_kill(thread, _DEMAND)

  with _handled(handle, _DEMAND) as is_handled:
    yield demand if is_handled else lambda error: None


@contextlib.contextmanager
def _handled(
  handle: Callable[[int, Any], None],
  *numbers: int,
  old_handlers: dict[int, Any] | None = None,
) -> Iterator[bool]:
  """Handles signals in the block, if in the main thread; yields whether.

  An ignored SIGHUP stays ignored. The replaced handlers are put into
  `old_handlers`.
  """
  old = {} if old_handlers is None else old_handlers
  is_handled = threading.current_thread() is threading.main_thread()
  for number in numbers if is_handled else ():
    if number != signal.SIGHUP or not is_hangup_ignored():
      old[number] = signal.signal(number, handle)
  try:
    yield is_handled
  finally:
    for number, old_handler in old.items():
      if signal.getsignal(number) is handle:
        signal.signal(number, old_handler)


@contextlib.contextmanager
def restored() -> Iterator[None]:
  """Starts another library: restores the signal handlers that it replaces.

  It can replace none outside the main thread. For its child processes, see
  `blocked`.
  """
  handlers = {number: signal.getsignal(number) for number in _NUMBERS}
  try:
    with blocked():
      yield
  finally:
    if threading.current_thread() is threading.main_thread():
      for number, handler in handlers.items():
        signal.signal(number, handler)


@contextlib.contextmanager
def blocked() -> Iterator[None]:
  """Blocks terminal signals in child processes until they ignore them."""
  signal.pthread_sigmask(signal.SIG_BLOCK, TERMINAL_SIGNALS)
  try:
    yield
  finally:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, TERMINAL_SIGNALS)
