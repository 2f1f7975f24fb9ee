"""Drawing thread of the dashboard."""

import collections
import dataclasses
import errno
import logging
import os
import queue
import threading
import time
from collections.abc import Callable, Sequence

from repertory.components.loggers import dashboard_drawing
from repertory.components.loggers.status import Status

# Interval at which the clock is redrawn without news.
_TICK_SECONDS = 1.0

# Number of prints buffered while the terminal is blocked.
_MAX_TEXTS = 1000

# The terminal has been closed, or the reader of the pipe has ended.
GONE = (errno.EPIPE, errno.EIO)

_log = logging.getLogger(__name__)


class DrawingThread:
  """Draws the newest status, as fast as the terminal allows.

  On a terminal, the elapsed time keeps running between statuses. Callers never
  wait, not even for a lock: neither another thread nor a signal handler that
  interrupts it.
  """

  def __init__(
    self,
    drawing: dashboard_drawing.Drawing,
    at_end: Callable[[], None] = lambda: None,
  ):
    """Creates the thread, which starts with the first status.

    Args:
      drawing: Draws statuses.
      at_end: Called after the last drawing.
    """
    self._drawing = drawing
    self._at_end = at_end
    # An entry requests work. Unlike other queues, this one allows `put` in a
    # signal handler that interrupts `put`.
    self._wanted: queue.SimpleQueue[None] = queue.SimpleQueue()
    self._is_woken = False
    # Newest status and returns, and the time they were set.
    self._newest: tuple[Status, Sequence[float], float] | None = None
    self._texts: collections.deque[str] = collections.deque(maxlen=_MAX_TEXTS)
    self._num_lost = 0
    self._is_closing = False
    self._is_over = False
    # A forked process has this memory, but not this thread.
    self._process_id = os.getpid()
    self._thread: threading.Thread | None = None

  def show(self, status: Status, returns: Sequence[float]) -> None:
    """Draws a status, replacing one that is not drawn yet."""
    self._newest = status, returns, time.monotonic()
    if self._thread is None:
      self._thread = threading.Thread(
        target=self._run, name='dashboard', daemon=True
      )
      self._thread.start()
    self._wake()

  def hold(self, status: Status, returns: Sequence[float]) -> None:
    """Sets a status to be drawn with the next one, or by the clock."""
    self._newest = status, returns, time.monotonic()

  @property
  def takes_text(self) -> bool:
    """Whether text can be printed above the panel; not after a failure."""
    is_here = self._process_id == os.getpid()
    return is_here and self._thread is not None and not self._is_over

  def print(self, text: str) -> None:
    """Prints lines above the panel; the last line break is left out."""
    self._num_lost += len(self._texts) == _MAX_TEXTS
    self._texts.append(text)
    self._wake()

  def close(
    self, status: Status, returns: Sequence[float], timeout_seconds: float
  ) -> None:
    """Draws a last status, if the terminal is not blocked too long.

    Otherwise the thread ends once the terminal is unblocked.
    """
    self._newest = status, returns, time.monotonic()
    self._is_closing = True
    self._wake()
    if self._thread is not None:
      self._thread.join(timeout_seconds)
    self._is_over = True

  def _wake(self) -> None:
    # The queue does not grow while the terminal is blocked.
    if not self._is_woken:
      self._is_woken = True
      self._wanted.put(None)

  def _run(self) -> None:
    try:
      self._draw_all()
    except OSError as error:
      self._is_over = True
      if error.errno not in GONE:
        _log.warning('The dashboard stopped: %s', error)
    except Exception:  # A failure must not end the run.
      self._is_over = True
      _log.exception('The dashboard stopped.')
    finally:
      self._at_end()

  def _draw_all(self) -> None:
    drawn = None
    seconds = _TICK_SECONDS if self._drawing.is_interactive else None
    while not self._is_over:
      try:
        self._wanted.get(timeout=seconds)
      except queue.Empty:
        self._tick()
        continue
      self._is_woken = False
      # In this order: `close` sets the status first.
      is_last, newest = self._is_closing, self._newest
      self._print_texts()
      if self._is_over or newest is None:
        continue
      if is_last:
        self._drawing.finish(*newest[:2])
        return
      if newest is not drawn:
        self._drawing.draw(*newest[:2])
        drawn = newest

  def _tick(self) -> None:
    """Redraws the status with the current time."""
    if self._newest is None:
      return
    status, returns, shown_at = self._newest
    elapsed = status.elapsed_seconds + time.monotonic() - shown_at
    status = dataclasses.replace(status, elapsed_seconds=elapsed)
    self._drawing.draw(status, returns)

  def _print_texts(self) -> None:
    texts = []
    if lost := self._num_lost:
      self._num_lost = 0
      texts.append(f'(The terminal was too slow: {lost} prints are left out.)')
    texts += [self._texts.popleft() for _ in range(len(self._texts))]
    if texts:
      self._drawing.print([line for text in texts for line in text.split('\n')])
