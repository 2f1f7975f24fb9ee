"""Background thread that calls a callback without blocking the caller."""

import collections
import dataclasses
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from typing import Any

# Maximum memory of the queued calls of a callback.
_MAX_BYTES = 2**26

# Queueing time after which a callback is reported as slow.
_SLOW_SECONDS = 10.0


@dataclasses.dataclass
class _Call:
  """Queued call.

  Attributes:
    what: Name of the call.
    function: Function to call.
    payloads: Payloads, joined into the argument of one call.
    join: Joins several payloads into one; None if each needs its own call.
    num_bytes: Approximate memory of the payloads.
    since: Time at which it was queued.
  """

  what: str
  function: Callable[[Any], Any]
  payloads: list[Any]
  join: Callable[[Sequence[Any]], Any] | None
  num_bytes: int
  since: float

  def make(self) -> None:
    if self.join is None:
      self.function(self.payloads[0])
    else:
      self.function(self.join(self.payloads))


class CallbackThread:
  """Makes the calls of one callback in order, in its own thread.

  Queueing a call never blocks on an earlier one.
  """

  def __init__(
    self,
    name: str,
    take_trouble: Callable[[str], bool],
    warn: Callable[[str], None],
    *,
    idle: Callable[[], None] | None = None,
    idle_seconds: float = 1.0,
    clock: Callable[[], float] = time.monotonic,
  ):
    """Prepares the thread; the first call starts it.

    Args:
      name: Name of the callback in messages.
      take_trouble: Handles the traceback of a call, or the message that too
        many are queued; returns whether to continue. Called in any thread.
      warn: Handles the warning that a callback is slow.
      idle: Function called in the thread after each `idle_seconds` without a
        call.
      idle_seconds: Idle period.
      clock: Clock in seconds.
    """
    self.name = name
    self._take_trouble = take_trouble
    self._warn = warn
    self._idle = idle
    self._idle_seconds = idle_seconds if idle is not None else None
    self._clock = clock
    self._changed = threading.Condition()
    self._calls: collections.deque[_Call] = collections.deque()
    self._num_bytes = 0
    self._busy = ''
    self._is_ending = False
    self._is_dropped = False
    self._is_slow = False
    self._thread: threading.Thread | None = None

  @property
  def is_over(self) -> bool:
    """Whether the thread has ended, was dropped or never started."""
    thread = self._thread
    return self._is_dropped or thread is None or not thread.is_alive()

  @property
  def progress(self) -> str:
    """Description of running and queued calls, for messages."""
    state = f'is in {self._busy}' if self._busy else 'is idle'
    return f'{self.name} {state}, with {len(self._calls)} calls queued'

  def call(
    self,
    what: str,
    function: Callable[[Any], Any],
    payload: Any,
    num_bytes: int = 0,
    join: Callable[[Sequence[Any]], Any] | None = None,
  ) -> None:
    """Queues a call.

    Args:
      what: Name of the call, for messages.
      function: Function to call.
      payload: Its argument.
      num_bytes: Approximate memory of the payload.
      join: Joins several payloads into one, so that queued calls may merge.
    """
    trouble = warning = ''
    with self._changed:
      if self._is_ending or self._is_dropped:
        return
      warning = self._find_slowness()
      # A single call is always accepted, whatever its size.
      if self._calls and self._num_bytes + num_bytes > _MAX_BYTES:
        trouble = (
          f'It is too slow: {len(self._calls)} calls of some '
          f'{self._num_bytes / 2**20:.0f} MB are queued, the first for '
          f'{self._clock() - self._calls[0].since:.0f} seconds. '
          f'{self.progress}.'
        )
      else:
        self._add(what, function, payload, num_bytes, join)
    if warning:
      self._warn(warning)
    if trouble and not self._take_trouble(trouble):
      self.drop()

  def end(
    self, what: str, function: Callable[[Any], Any], payload: Any
  ) -> None:
    """Queues the last call, see `call`; then the thread ends."""
    with self._changed:
      if not self._is_ending and not self._is_dropped:
        self._add(what, function, payload, 0, None)
        self._is_ending = True

  def drop(self) -> None:
    """Drops all queued calls; a running one is not waited for."""
    with self._changed:
      self._is_dropped = True
      self._calls.clear()
      self._changed.notify_all()

  def wait_until_idle(self, seconds: float) -> bool:
    """Blocks until all calls are made; returns False after `seconds`."""
    with self._changed:
      return self._changed.wait_for(
        lambda: self.is_over or not (self._calls or self._busy), seconds
      )

  def _add(self, what, function, payload, num_bytes, join) -> None:
    last = self._calls[-1] if self._calls else None
    if join is not None and last is not None and last.function == function:
      last.payloads.append(payload)
      last.num_bytes += num_bytes
    else:
      since = self._clock()
      call = _Call(what, function, [payload], join, num_bytes, since)
      self._calls.append(call)
    self._num_bytes += num_bytes
    if self._thread is None:
      self._thread = threading.Thread(
        target=self._run, name=self.name, daemon=True
      )
      self._thread.start()
    self._changed.notify_all()

  def _find_slowness(self) -> str:
    """Returns a warning when the callback becomes slow, else ''."""
    seconds = self._clock() - self._calls[0].since if self._calls else 0.0
    was_slow, self._is_slow = self._is_slow, seconds > _SLOW_SECONDS
    if was_slow or not self._is_slow:
      return ''
    return f'{self.progress}, the first for {seconds:.0f} seconds: it is slow'

  def _run(self) -> None:
    while (call := self._take()) is not None:
      try:
        call.make()
        continues = True
      except BaseException:  # SystemExit would end the thread silently.
        continues = self._take_trouble(traceback.format_exc())
      finally:
        with self._changed:
          self._busy = ''
          self._changed.notify_all()
      if not continues:
        self.drop()

  def _take(self) -> _Call | None:
    """Blocks until the next call; returns None once the thread must end."""
    with self._changed:
      idle = self._idle
      while not self._is_dropped:
        if self._calls:
          call = self._calls.popleft()
          self._num_bytes -= call.num_bytes
          self._busy = call.what
          return call
        if self._is_ending:
          return None
        if not self._changed.wait(self._idle_seconds) and idle is not None:
          return _Call('', lambda _: idle(), [None], None, 0, 0.0)
      return None
