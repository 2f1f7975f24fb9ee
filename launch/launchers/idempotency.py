"""RPC server: thread pool, and idempotent handling of retried calls."""

import collections
import functools
import queue
import threading
from collections.abc import Callable
from concurrent import futures

# Number of latest replies that are kept, and their maximum size. A thousand
# actors make this many calls to the coordinator within 5 seconds, 16 within
# minutes.
_NUM_KEPT = 20_000
_LARGEST_BYTES = 4096


class ReplyCache:
  """Cache of replies to the latest calls, so that retries do not run twice.

  A client that loses its connection cannot know whether the server received the
  call, so it retries. If the server did, the retry gets the first call's reply:
  for example, the steps of one report must not be counted twice.

  Large replies are not kept. They contain variables and the like; such calls
  change nothing and may run again.
  """

  def __init__(self):
    self._lock = threading.Lock()
    self._open: dict[str, futures.Future[bytes]] = {}
    self._kept: collections.OrderedDict[str, bytes] = collections.OrderedDict()

  def get(self, call: str, make: Callable[[], bytes]) -> bytes:
    """Returns the reply to a call, waiting for it if the call is pending."""
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


class DaemonThreads(futures.Executor):
  """Thread pool with daemon threads, started on demand.

  Unlike with `futures.ThreadPoolExecutor`, a hanging call does not keep Python
  from exiting.
  """

  def __init__(self, most: int):
    self._most = most
    self._tasks: queue.SimpleQueue = queue.SimpleQueue()
    self._idle = threading.Semaphore(0)
    self._threads: list[threading.Thread] = []

  def submit(self, function, /, *arguments, **named):
    """Runs a function in the pool; gRPC submits from a single thread."""
    call: futures.Future = futures.Future()
    self._tasks.put((call, functools.partial(function, *arguments, **named)))
    is_idle = self._idle.acquire(blocking=False)
    if not is_idle and len(self._threads) < self._most:
      thread = threading.Thread(target=self._work, name='call', daemon=True)
      self._threads.append(thread)
      thread.start()
    return call

  def shutdown(self, wait=True, *, cancel_futures=False):
    """Ends threads after their queued calls."""
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
