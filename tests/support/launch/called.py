"""A service for tests of remote calls."""

import threading

from repertory.components.runtime import signals

SECONDS = 30.0
NUM_THREADS = 4
TOKEN = 'the token'


class Service:
  """Blocks calls until it is released."""

  def __init__(self):
    self.release = threading.Event()
    self.waiting = threading.Semaphore(0)

  @property
  def served(self):
    return {
      'double': lambda x: 2 * x,
      'echo': lambda *arguments, **named: (arguments, named),
      'fail': self._fail,
      'wait': self._wait,
    }

  def _fail(self):
    raise signals.Stopped('It is over.')

  def _wait(self):
    self.waiting.release()
    assert self.release.wait(SECONDS)
    return 'waited'

  def expect_waiting(self, count):
    for _ in range(count):
      assert self.waiting.acquire(timeout=SECONDS)


def serving(library, port, served):
  """Returns a context manager that serves methods, or a service's."""
  served = getattr(served, 'served', served)
  return library.serving(port, served, num_threads=NUM_THREADS, token=TOKEN)
