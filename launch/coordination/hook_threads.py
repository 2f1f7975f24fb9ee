"""The thread in which a hook is called; nobody waits for it."""

import collections
import dataclasses
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from typing import Any

# Of what waits for a hook.
_MAX_BYTES = 2**26

# After what has waited for so long is told that a hook is slow.
_SLOW_SECONDS = 10.0


@dataclasses.dataclass
class _Call:
  """A call that waits.

  Attributes:
    what: The call, in a word.
    function: Is called with what there is to tell.
    payloads: What there is, all of which one call can tell.
    join: Makes one of several; None if each is told by a call of its own.
    num_bytes: What they take in memory, about.
    since: When it began to wait.
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


class HookThread:
  """Makes the calls of one hook, one after the other.

  Whoever hands one over never waits for another one to end.
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
    """Starts nothing before there is a call.

    Args:
      name: What the hook is called when it is told of.
      take_trouble: Takes, in words, what a call has raised, or that too many
        wait; returns whether there may be further calls. Called in any thread.
      warn: Takes what the user should know of a hook that is slow.
      idle: Called in the thread when there was no call for a time.
      idle_seconds: That time.
      clock: Tells seconds.
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
    """Whether there is nothing left to do, after `end`; or never again."""
    thread = self._thread
    return self._is_dropped or thread is None or not thread.is_alive()

  @property
  def progress(self) -> str:
    """Says what it is at, for an error or a display."""
    at = f'is at {self._busy}' if self._busy else 'is at no call'
    return f'{self.name} {at}, and {len(self._calls)} wait'

  def call(
    self,
    what: str,
    function: Callable[[Any], Any],
    payload: Any,
    num_bytes: int = 0,
    join: Callable[[Sequence[Any]], Any] | None = None,
  ) -> None:
    """Hands a call over, to be made after those before it.

    Args:
      what: The call, in a word.
      function: Is called.
      payload: With this.
      num_bytes: What it takes in memory, about.
      join: Makes one of several payloads; then calls that wait may become one.
    """
    trouble = warning = ''
    with self._changed:
      if self._is_ending or self._is_dropped:
        return
      warning = self._find_slowness()
      # One alone is taken, however large it is.
      if self._calls and self._num_bytes + num_bytes > _MAX_BYTES:
        trouble = (
          f'It is too slow: {len(self._calls)} calls of some '
          f'{self._num_bytes / 2**20:.0f} MB wait, the first for '
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
    """Hands the last call over, see `call`; then the thread ends."""
    with self._changed:
      if not self._is_ending and not self._is_dropped:
        self._add(what, function, payload, 0, None)
        self._is_ending = True

  def drop(self) -> None:
    """Makes no further calls; one that is being made is left to itself."""
    with self._changed:
      self._is_dropped = True
      self._calls.clear()
      self._changed.notify_all()

  def wait_until_idle(self, seconds: float) -> bool:
    """Waits for all calls to be made; returns whether they were in time."""
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
    """Says, once for as long as it lasts, that what waits has done so long."""
    seconds = self._clock() - self._calls[0].since if self._calls else 0.0
    was_slow, self._is_slow = self._is_slow, seconds > _SLOW_SECONDS
    if was_slow or not self._is_slow:
      return ''
    return f'{self.progress}, the first for {seconds:.0f} seconds: it is slow'

  def _run(self) -> None:
    while (call := self._take()) is not None:
      try:
        call.make()
        goes_on = True
      except BaseException:  # Also what would end a thread without a word.
        goes_on = self._take_trouble(traceback.format_exc())
      finally:
        with self._changed:
          self._busy = ''
          self._changed.notify_all()
      if not goes_on:
        self.drop()

  def _take(self) -> _Call | None:
    """Waits for the next call; returns None when there is none any more."""
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
