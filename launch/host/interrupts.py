"""Ctrl-C and SIGTERM as a request to stop, once."""

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator

from repertory.components import signals

_NUMBERS = (signal.SIGINT, signal.SIGTERM)
_DEMAND = signal.SIGUSR2


class Interruption(signals.StopSignal):
  """A stop signal that knows which operating-system signal set it."""

  number: int | None = None


@contextlib.contextmanager
def catch_interrupts() -> Iterator[Interruption]:
  """Turns the first SIGINT or SIGTERM into a stop signal.

  A second one has its usual effect. Works in the main thread only, where
  Python handles signals; elsewhere nothing is caught.

  Yields:
    The stop signal.
  """
  interruption = Interruption()
  old_handlers = {}

  def handle(number, frame):
    del frame
    interruption.number = number
    interruption.set()
    restore()

  def restore():
    while old_handlers:
      number, handler = old_handlers.popitem()
      signal.signal(number, handler)

  try:
    for number in _NUMBERS:
      old_handlers[number] = signal.signal(number, handle)
  except ValueError:
    pass  # Not the main thread.
  try:
    yield interruption
  finally:
    restore()


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

  try:
    old_handler = signal.signal(_DEMAND, handle)
  except ValueError:  # Not the main thread.
    yield lambda error: None
    return
  try:
    yield demand
  finally:
    signal.signal(_DEMAND, old_handler)


def current_handlers() -> dict:
  """Returns the handlers of the caught signals, to put back later."""
  return {number: signal.getsignal(number) for number in _NUMBERS}


def set_handlers(handlers: dict) -> None:
  """Puts handlers back that another library replaced."""
  for number, handler in handlers.items():
    signal.signal(number, handler)
