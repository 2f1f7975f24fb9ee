"""Calls that a server takes: threads that answer them, each of them once."""

import collections
import functools
import queue
import threading
from collections.abc import Callable
from concurrent import futures

# So many answers are kept, the latest ones, none of which is larger. A thousand
# actors call the coordinator so often within 5 seconds, 16 within minutes.
_NUM_KEPT = 20_000
_LARGEST_BYTES = 4096


class Answers:
  """Answers of a server to its latest calls, so that none is made twice.

  Whoever loses the connection to a server cannot know whether that has taken
  the call, and calls again. If it has, it is that call's answer that is due: to
  count the steps of one report twice would be wrong.

  Large ones are not kept. They are variables and the like, which change nothing
  and may be asked for again.
  """

  def __init__(self):
    self._lock = threading.Lock()
    self._open: dict[str, futures.Future[bytes]] = {}
    self._kept: collections.OrderedDict[str, bytes] = collections.OrderedDict()

  def get(self, call: str, make: Callable[[], bytes]) -> bytes:
    """Returns the answer to a call, waiting for it if the call came before.

    Args:
      call: Is the same, and nobody else's, as often as it comes.
      make: Makes the answer; raises nothing.
    """
    with self._lock:
      if call in self._kept:
        return self._kept[call]
      is_new = call not in self._open
      made = self._open.setdefault(call, futures.Future())
    if is_new:
      made.set_result(make())
      self._keep(call)
    return made.result()

  def _keep(self, call: str) -> None:
    with self._lock:
      answer = self._open.pop(call).result()
      if len(answer) <= _LARGEST_BYTES:
        self._kept[call] = answer
        if len(self._kept) > _NUM_KEPT:
          self._kept.popitem(last=False)


class Threads(futures.Executor):
  """Threads that are started as they are needed, and not waited for.

  Python waits at its exit for those of `futures.ThreadPoolExecutor`, so that a
  call that hangs would keep the process.
  """

  def __init__(self, most: int):
    self._most = most
    self._tasks: queue.SimpleQueue = queue.SimpleQueue()
    self._idle = threading.Semaphore(0)
    self._threads: list[threading.Thread] = []

  def submit(self, function, /, *arguments, **named):
    """Lets a thread call a function; gRPC asks from one thread alone."""
    call: futures.Future = futures.Future()
    self._tasks.put((call, functools.partial(function, *arguments, **named)))
    is_idle = self._idle.acquire(blocking=False)
    if not is_idle and len(self._threads) < self._most:
      thread = threading.Thread(target=self._work, name='call', daemon=True)
      self._threads.append(thread)
      thread.start()
    return call

  def shutdown(self, wait=True, *, cancel_futures=False):
    """Lets threads end when they have done what they are at."""
    del wait, cancel_futures
    for _ in self._threads:
      self._tasks.put(None)

  def _work(self) -> None:
    while (task := self._tasks.get()) is not None:
      call, function = task
      if call.set_running_or_notify_cancel():
        try:
          call.set_result(function())
        except BaseException as error:
          call.set_exception(error)
      self._idle.release()
