"""Ctrl-C, SIGTERM and SIGHUP as a request to stop, once."""

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

from repertory.components import signals

_NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_DEMAND = signal.SIGUSR2

# The exit code of what a signal ended, minus the number of the signal.
EXIT_BASE = 128

# What a terminal sends to all its processes.
TERMINAL_SIGNALS = (signal.SIGINT, signal.SIGHUP)


class Interruption(signals.StopSignal):
  """A stop signal that knows which operating-system signal set it."""

  number: int | None = None


@contextlib.contextmanager
def catch_interrupts() -> Iterator[Interruption]:
  """Turns the first SIGINT, SIGTERM or SIGHUP into a stop signal.

  A second SIGINT or SIGTERM has its usual effect. Further SIGHUPs have none:
  of a terminal that is closed, the kernel sends one and the shell another. A
  SIGHUP that is ignored, as by `nohup`, stays so. Works in the main thread
  only, where Python handles signals; elsewhere nothing is caught.

  Yields:
    The stop signal.
  """
  interruption = Interruption()
  old_handlers = {}

  def handle(number, frame):
    del frame
    if interruption.number is None:
      interruption.number = number
    interruption.set()
    restore(signal.SIGINT, signal.SIGTERM)

  def restore(*numbers):
    for number in numbers:
      if number in old_handlers:
        signal.signal(number, old_handlers.pop(number))

  try:
    for number in _NUMBERS:
      if number != signal.SIGHUP or not is_hangup_ignored():
        old_handlers[number] = signal.signal(number, handle)
  except ValueError:
    pass  # Not the main thread.
  try:
    yield interruption
  finally:
    restore(*_NUMBERS)


@contextlib.contextmanager
def leaving_at_once() -> Iterator[None]:
  """Lets Ctrl-C end the process at once, while there is nothing to save.

  An exception would go through imports of others, which may turn it into
  another one or drop it.
  """

  def leave(number, frame):
    del frame
    os.write(2, b'repertory: interrupted\n')
    os._exit(EXIT_BASE + number)

  with _handled(signal.SIGINT, leave):
    yield


@contextlib.contextmanager
def insisting() -> Iterator[Callable[[], bool]]:
  """Sees to it that signals end the block, whatever becomes of the exception.

  Where the block is, Ctrl-C raises KeyboardInterrupt, as ever, and SIGTERM and
  SIGHUP raise SystemExit. Python drops such an exception in a finalizer, and
  TensorFlow in some of its callbacks, or makes another error of it; so whatever
  the block raises then, or if it ends, that is raised. A SIGHUP that is ignored
  stays so, and further ones have no effect: of a terminal that is closed there
  are two. In other threads than the main one nothing is changed.

  Yields:
    Tells whether there was one, for loops to look at.
  """
  received = []

  def handle(number, frame):
    del frame
    is_known = number == signal.SIGHUP and bool(received)
    received.append(number)
    if not is_known:
      raise _exception_of(number)

  try:
    with contextlib.ExitStack() as stack:
      for number in _NUMBERS:
        if number != signal.SIGHUP or not is_hangup_ignored():
          stack.enter_context(_handled(number, handle))
      yield lambda: bool(received)
  except Exception as error:
    if received:
      raise _exception_of(received[0]) from error
    raise
  if received:
    raise _exception_of(received[0])


def _exception_of(number: int) -> BaseException:
  """Returns what a signal raises while there is nothing to save."""
  if number == signal.SIGINT:
    return KeyboardInterrupt()
  return SystemExit(EXIT_BASE + number)


def is_hangup_ignored() -> bool:
  """Returns whether this process ignores SIGHUP, as `nohup` lets it."""
  return signal.getsignal(signal.SIGHUP) == signal.SIG_IGN


@contextlib.contextmanager
def raising_on_demand() -> Iterator[Callable[[BaseException], None]]:
  """Lets other threads end what this thread, the main one, is waiting for.

  Yields:
    Makes the main thread raise an exception, as soon as it runs Python code or
    is at a call that a signal interrupts. Not all that is written in other
    languages bears that; Reverb does not. In other threads than the main one
    the exception is dropped.
  """
  raised, thread = [], threading.get_ident()

  def handle(number, frame):
    del number, frame
    if raised:
      raise raised.pop()

  def demand(error: BaseException) -> None:
    raised.append(error)
    signal.pthread_kill(thread, _DEMAND)

  with _handled(_DEMAND, handle) as is_handled:
    yield demand if is_handled else lambda error: None


@contextlib.contextmanager
def _handled(number: int, handle: Callable[[int, Any], None]) -> Iterator[bool]:
  """Handles a signal while the block runs, and then as before.

  What the block itself has put in place of the handler stays.

  Yields:
    Whether it is handled: only in the main thread, where Python does it.
  """
  if threading.current_thread() is not threading.main_thread():
    yield False
    return
  old_handler = signal.signal(number, handle)
  try:
    yield True
  finally:
    if signal.getsignal(number) is handle:
      signal.signal(number, old_handler)


def current_handlers() -> dict:
  """Returns the handlers of the caught signals, to put back later."""
  return {number: signal.getsignal(number) for number in _NUMBERS}


def set_handlers(handlers: dict) -> None:
  """Puts handlers back that another library replaced."""
  for number, handler in handlers.items():
    signal.signal(number, handler)


@contextlib.contextmanager
def blocked() -> Iterator[None]:
  """Keeps what a terminal sends to all from processes that are being started.

  It is the launcher's alone. Processes inherit the mask, and ignore the signals
  before they lift it.
  """
  signal.pthread_sigmask(signal.SIG_BLOCK, TERMINAL_SIGNALS)
  try:
    yield
  finally:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, TERMINAL_SIGNALS)
