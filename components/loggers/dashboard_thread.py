"""The thread in which a dashboard is drawn."""

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

# How often the clock moves on while there is no news.
_TICK_SECONDS = 1.0

# Of what others print while the terminal takes nothing, so much is kept.
_MAX_TEXTS = 1000

# The terminal has been closed, or what reads the pipe has ended.
GONE = (errno.EPIPE, errno.EIO)

_log = logging.getLogger(__name__)


class DrawingThread:
  """Draws the newest of what it is handed, at the pace of the terminal.

  On a terminal, the time that has elapsed goes on while nothing is handed over.

  Whoever hands something over never waits, not even for a lock: neither another
  thread nor a signal handler that interrupts it.
  """

  def __init__(
    self,
    drawing: dashboard_drawing.Drawing,
    at_end: Callable[[], None] = lambda: None,
  ):
    """Starts nothing before there is something to draw.

    Args:
      drawing: What draws.
      at_end: Called when the last has been drawn.
    """
    self._drawing = drawing
    self._at_end = at_end
    # Has an entry when there is something to do; of all queues this one may be
    # put to by a signal handler that interrupts the same.
    self._wanted: queue.SimpleQueue[None] = queue.SimpleQueue()
    self._is_woken = False
    # What to draw, with the time at which it was handed over.
    self._newest: tuple[Status, Sequence[float], float] | None = None
    self._texts: collections.deque[str] = collections.deque(maxlen=_MAX_TEXTS)
    self._num_lost = 0
    self._is_closing = False
    self._is_over = False
    # A process that is forked has our memory, but not this thread.
    self._process_id = os.getpid()
    self._thread: threading.Thread | None = None

  def show(self, status: Status, returns: Sequence[float]) -> None:
    """Hands a status over, in place of one that is not drawn yet."""
    self._newest = status, returns, time.monotonic()
    if self._thread is None:
      self._thread = threading.Thread(
        target=self._run, name='dashboard', daemon=True
      )
      self._thread.start()
    self._wake()

  def hold(self, status: Status, returns: Sequence[float]) -> None:
    """Hands a status over that is drawn with the next one, or when time is."""
    self._newest = status, returns, time.monotonic()

  @property
  def takes_text(self) -> bool:
    """Whether what others print can be handed over; not after a failure."""
    is_here = self._process_id == os.getpid()
    return is_here and self._thread is not None and not self._is_over

  def print(self, text: str) -> None:
    """Hands over lines, without the last line break, to go above the panel."""
    self._num_lost += len(self._texts) == _MAX_TEXTS
    self._texts.append(text)
    self._wake()

  def close(
    self, status: Status, returns: Sequence[float], timeout_seconds: float
  ) -> None:
    """Draws a last status, if the terminal takes it in time.

    Otherwise the thread ends as soon as the terminal takes what it has begun.
    """
    self._newest = status, returns, time.monotonic()
    self._is_closing = True
    self._wake()
    if self._thread is not None:
      self._thread.join(timeout_seconds)
    self._is_over = True

  def _wake(self) -> None:
    # The queue of a thread that waits for its terminal does not grow.
    if not self._is_woken:
      self._is_woken = True
      self._wanted.put(None)

  def _run(self) -> None:
    try:
      self._draw_all()
    except OSError as error:
      self._is_over = True
      if error.errno not in GONE:
        _log.warning('Nothing is displayed any more: %s', error)
    except Exception:  # The run is worth more than its display.
      self._is_over = True
      _log.exception('Nothing is displayed any more.')
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
      # In this order: what is closed with comes before.
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
    """Draws what is drawn anew, with the time that it is now."""
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
