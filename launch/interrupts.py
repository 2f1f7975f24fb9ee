"""Ctrl-C and SIGTERM as a request to stop, once."""

import contextlib
import signal
from collections.abc import Iterator

from repertory.components import signals

_NUMBERS = (signal.SIGINT, signal.SIGTERM)


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


def current_handlers() -> dict:
  """Returns the handlers of the caught signals, to put back later."""
  return {number: signal.getsignal(number) for number in _NUMBERS}


def set_handlers(handlers: dict) -> None:
  """Puts handlers back that another library replaced."""
  for number, handler in handlers.items():
    signal.signal(number, handler)
