"""Callbacks, user loggers and the stop criterion of a run."""

import collections
import copy
import dataclasses
import functools
import re
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from repertory.components.runtime import signals
from repertory.launch.coordination import kinds
from repertory.launch.experiments import callbacks, failures
from repertory.launch.opening import session as session_lib

# Delay of an event after which a callback is reported as slow.
_SLOW_SECONDS = 10.0
# Interval of calls of the stop criterion.
_ASK_SECONDS = 1.0


@dataclasses.dataclass(eq=False)
class _Subscriber:
  """Callback, logger or stop criterion; errors of loggers are not fatal."""

  name: str
  target: Any
  is_fatal: bool
  is_dropped: bool = False


@dataclasses.dataclass
class _Event:
  """Queued event.

  Attributes:
    method: Method of callbacks to call with the last payload; '' for none.
    logger_method: Method of loggers to call with all payloads; '' for none.
    payloads: Arguments; several for episodes, which are joined.
    since: Time at which it was queued.
  """

  method: str
  logger_method: str
  payloads: list[Any]
  since: float


class _Call(NamedTuple):
  """Call of one subscriber."""

  subscriber: _Subscriber
  what: str
  function: Callable[[], Any]
  since: float

  def __str__(self) -> str:
    return f'{self.subscriber.name} is in {self.what}'


class RunCallbacks:
  """Calls the callbacks, loggers and stop criterion of a run.

  One thread makes all calls, so none blocks the coordinator. A callback or stop
  criterion that raises ends the run; a logger that raises causes a warning. If
  a call, or the wait for one, exceeds `timeout_seconds`, what is being called
  then is given up: a callback ends the run, a logger gets no more rows, and a
  new thread calls the others.
  """

  def __init__(self, session: session_lib.Session, coordinator: Any):
    """Prepares the thread; `start` starts it.

    Args:
      coordinator: Coordinator to warn, stop or abort from the thread.
    """
    self._coordinator = coordinator
    experiment = session.experiment
    self._info_names = experiment.info
    self._timeout_seconds = experiment.timeout_seconds
    # Below the watchdog limit of a run in one thread.
    self._decision_seconds = 0.5 * min(
      experiment.timeout_seconds, experiment.stall_seconds
    )
    found = session.callback_list
    self._callbacks = _subscribe('callbacks', found.callbacks, True)
    self._loggers = _subscribe('loggers', found.loggers, False)
    self._stop_when = _Subscriber('stop_when', found.stop_when, True)
    self._stop_when.is_dropped = found.stop_when is None
    self._warned: set[str] = set()
    self._end_deadline: float | None = None
    self._has_changed = threading.Condition()
    self._events: collections.deque[_Event] = collections.deque()
    self._calls: collections.deque[_Call] = collections.deque()
    self._running: _Call | None = None
    # Whether an answer of the stop criterion is due.
    self._is_asking, self._ask_at = False, 0.0
    self._is_slow = self._is_ending = self._is_closed = False
    self._thread: threading.Thread | None = None

  def start(self, session: session_lib.Session, title: str) -> None:
    """Reports the start to all, each with a copy of the settings.

    Args:
      title: Display title of the run.
    """
    self._ask_to_stop()
    self._put('on_start', 'start', _describe(session, title))

  def take_episodes(
    self, columns: Mapping[str, np.ndarray], position: Mapping[str, Any]
  ) -> None:
    """Reports training episodes to callbacks.

    Args:
      columns: Logged columns, one entry per episode.
      position: Step counts and elapsed time of the run.
    """
    if not self._callbacks:
      return
    returns, lengths = columns['episode_return'], columns['episode_length']
    metrics = {name: columns[name] for name in self._info_names}
    total = int(columns['episodes'][-1])
    episodes = callbacks.EpisodesEvent(
      returns, lengths, total, **position, metrics=metrics
    )
    self._put('on_episodes', '', episodes)

  def take_row(self, label: str, row: Mapping[str, Any]) -> None:
    """Reports a log row, as a copy for each callback and logger."""
    is_learner = label == kinds.LEARNER.name
    method = 'on_learner_row' if is_learner and self._callbacks else ''
    if method or self._loggers:
      self._put(method, 'write', label, row)

  def take_evaluation(
    self,
    returns: Sequence[float],
    lengths: Sequence[int],
    metrics: Mapping[str, Sequence[float]],
    is_best: bool,
    position: Mapping[str, Any],
  ) -> None:
    """Reports an evaluation to callbacks, and asks the stop criterion.

    Args:
      returns: Return of each episode.
      lengths: Length of each episode.
      metrics: The experiment's own metrics of each episode, by name.
      is_best: Whether it is the best so far.
      position: Step counts and elapsed time of the run.
    """
    evaluation = callbacks.EvaluationEvent(
      np.array(returns),
      np.array(lengths),
      {name: np.array(values) for name, values in metrics.items()},
      is_best,
      **position,
    )
    self._ask_to_stop()
    self._put('on_evaluation', '', evaluation)

  def wait_for_decision(self, stop: signals.StopSignal) -> None:
    """Blocks until the stop criterion has answered on the last evaluation.

    A late answer fails the run.

    Args:
      stop: Signal that ends the wait.

    Raises:
      signals.Stopped: If the stop signal was set.
    """

    def is_answered(seconds: float) -> bool:
      with self._has_changed:
        return self._has_changed.wait_for(lambda: not self._is_asking, seconds)

    try:
      signals.wait_for(
        is_answered,
        lambda: f'stop_when to return ({self._describe_progress()})',
        self._decision_seconds,
        stop,
      )
    except TimeoutError as error:
      self._give_up(self._stop_when)
      self._take_trouble(self._stop_when, str(error))

  def end(self, outcome: str, reason: str) -> str:
    """Reports the end on the first call; returns what is still called.

    A callback that takes too long fails the run, a logger causes a warning.

    Args:
      outcome: Outcome as in `callbacks.EndEvent`.
      reason: Reason as in `callbacks.EndEvent`.

    Returns:
      Message on the calls in progress; '' once all have ended.
    """
    if self._end_deadline is None:
      self._end_deadline = time.monotonic() + self._timeout_seconds
      if self._is_asking and not self._stop_when.is_dropped:
        self._warn('the run ends without an answer of stop_when')
      self._give_up(self._stop_when)
      status = self._coordinator.status()
      self._put('on_end', 'close', callbacks.EndEvent(outcome, reason, status))
      with self._has_changed:
        self._is_ending = True
        self._has_changed.notify_all()
    with self._has_changed:
      if self._is_over:
        return ''
      running, progress = self._running, self._describe_progress()
    if running is None or time.monotonic() < self._end_deadline:
      return f'waiting: {progress}'
    self._end_deadline = time.monotonic() + self._timeout_seconds
    self._give_up(running.subscriber)
    self._take_trouble(
      running.subscriber,
      f'It has not ended within {self._timeout_seconds:g} seconds: {progress}.',
    )
    return f'waiting: {progress}'

  def close(self) -> None:
    """Makes no further calls."""
    with self._has_changed:
      self._is_closed = True
      self._has_changed.notify_all()

  # Queueing, in any thread.

  def _put(self, method: str, logger_method: str, *payload: Any) -> None:
    """Queues an event, which may be merged with the previous one."""
    if not (self._callbacks or self._loggers):
      return
    with self._has_changed:
      if self._is_ending or self._is_closed:
        return
      last = self._events[-1] if self._events else None
      if last is not None and last.method == method == 'on_episodes':
        last.payloads += payload
      else:
        event = _Event(method, logger_method, [*payload], time.monotonic())
        self._events.append(event)
      self._start_thread()
    self._check_delay()

  def _ask_to_stop(self) -> None:
    """Requests an answer of the stop criterion, before queued events."""
    with self._has_changed:
      if not self._stop_when.is_dropped:
        self._is_asking = True
        self._start_thread()

  def _check_delay(self) -> None:
    """Warns of a slow callback, and gives it up after a time-out."""
    with self._has_changed:
      running, now = self._running, time.monotonic()
      if running is None:
        return
      since = min([running.since, *(one.since for one in self._events)])
      was_slow, self._is_slow = self._is_slow, now - since > _SLOW_SECONDS
      progress = (
        f'{self._describe_progress()}, the first for {now - since:.0f} seconds'
      )
    if now - since > self._timeout_seconds:
      self._give_up(running.subscriber)
      self._take_trouble(running.subscriber, f'It is too slow: {progress}.')
    elif self._is_slow and not was_slow:
      self._warn(f'{progress}: it is slow')

  def _give_up(self, one: _Subscriber) -> None:
    """Makes no further calls of a subscriber; others are called meanwhile."""
    with self._has_changed:
      one.is_dropped = True
      if one is self._stop_when:
        self._is_asking = False
      if self._running is not None and self._running.subscriber is one:
        self._running = self._thread = None
        self._start_thread()

  def _start_thread(self) -> None:
    if self._thread is None:
      self._thread = threading.Thread(
        target=self._run, name='callbacks', daemon=True
      )
      self._thread.start()
    self._has_changed.notify_all()

  @property
  def _is_over(self) -> bool:
    return (
      self._is_closed or self._thread is None or not self._thread.is_alive()
    )

  def _describe_progress(self) -> str:
    queued = len(self._events) + len(self._calls)
    return f'{self._running or "callbacks"}, with {queued} calls queued'

  # In the thread.

  def _run(self) -> None:
    while (call := self._next()) is not None:
      one, trouble = call.subscriber, ''
      try:
        call.function()
      except BaseException:  # SystemExit would end the thread silently.
        trouble = traceback.format_exc()
      if self._thread is not threading.current_thread():
        return  # It was given up.
      if trouble:
        one.is_dropped = one.is_fatal or call.what == 'start'
        self._take_trouble(one, trouble)
      with self._has_changed:
        self._running = None
        if one is self._stop_when:
          self._is_asking = False
          self._ask_at = time.monotonic() + _ASK_SECONDS
        self._has_changed.notify_all()

  def _next(self) -> _Call | None:
    """Blocks until the next call; returns None once the thread must end."""
    with self._has_changed:
      while self._thread is threading.current_thread() and not self._is_closed:
        if (call := self._find_call()) is not None:
          self._running = call._replace(since=time.monotonic())
          return self._running
        if self._is_ending:
          return None
        is_asked = not self._stop_when.is_dropped
        seconds = (
          max(0.0, self._ask_at - time.monotonic()) if is_asked else None
        )
        self._has_changed.wait(seconds)
      return None

  def _find_call(self) -> _Call | None:
    is_due = self._is_asking or time.monotonic() >= self._ask_at
    if is_due and not self._stop_when.is_dropped:
      return _Call(self._stop_when, 'a call', self._ask, 0.0)
    while self._calls or self._events:
      if not self._calls:
        self._calls.extend(self._make_calls(self._events.popleft()))
        continue
      call = self._calls.popleft()
      if not call.subscriber.is_dropped:
        return call
    return None

  def _make_calls(self, event: _Event) -> Iterator[_Call]:
    """Yields the calls of an event, each with its own copy of it."""
    payload = event.payloads
    if event.method == 'on_episodes':
      payload = [callbacks.EpisodesEvent.join(payload)]
    for subscribers, method, arguments in (
      (self._callbacks, event.method, payload[-1:]),
      (self._loggers, event.logger_method, payload),
    ):
      for one in subscribers if method else ():
        function = functools.partial(
          getattr(one.target, method), *map(_copy, arguments)
        )
        yield _Call(one, method, function, 0.0)

  def _ask(self) -> None:
    """Calls the stop criterion, and ends the run if it says so."""
    answer = self._stop_when.target(self._coordinator.status())
    if not isinstance(answer, (bool, np.bool_, str)):
      raise TypeError(
        'stop_when must return true or false, or the reason to stop, got '
        f'{answer!r}.'
      )
    if answer:
      self._stop_when.is_dropped = True
      self._coordinator.stop_early(
        answer if isinstance(answer, str) else 'stop_when returned true'
      )

  def _take_trouble(self, one: _Subscriber, trouble: str) -> None:
    """Ends the run, or warns once of an error, whatever numbers it has."""
    if one.is_fatal:
      failure = failures.Failure(
        kinds.COORDINATOR.name, f'{one.name} failed:\n{trouble}'
      )
      self._coordinator.abort(failure)
      return
    summary = failures.Failure(one.name, trouble).summary
    key = f'{one.name}: {re.sub("[0-9]+", "0", summary)}'
    if key not in self._warned:
      self._warned.add(key)
      self._warn(f'{one.name}: {summary}')

  def _warn(self, message: str) -> None:
    self._coordinator.warn(kinds.COORDINATOR.name, message)


def _subscribe(setting: str, found: Sequence[Any], is_fatal: bool):
  return [
    _Subscriber(f'{setting}[{i}] ({type(one).__name__})', one, is_fatal)
    for i, one in enumerate(found)
  ]


def _copy(payload: Any) -> Any:
  """Copies an argument, but arrays, which become read-only."""
  if isinstance(payload, callbacks.RunEvent):
    return copy.deepcopy(payload)
  if isinstance(payload, Mapping):
    return dict(payload)
  if isinstance(payload, (callbacks.EpisodesEvent, callbacks.EvaluationEvent)):
    metrics = dict(payload.metrics)
    for array in (payload.returns, payload.lengths, *metrics.values()):
      array.setflags(write=False)
    return dataclasses.replace(payload, metrics=metrics)
  return payload


def _describe(session: session_lib.Session, title: str) -> callbacks.RunEvent:
  """Describes a run for callbacks and loggers."""
  described = session.description['experiment']
  settings = {k: value for k, value in described.items() if value is not None}
  counts = session.counts
  return callbacks.RunEvent(
    title,
    session.experiment.directory,
    {**settings, **session.identity, **session.run_layout},
    steps=counts['steps'],
    learner_steps=counts['learner_steps'],
    episodes=counts['episodes'],
    elapsed_seconds=session.elapsed_seconds,
    is_resumed=session.is_resumed,
    num_restarts=session.num_restarts,
  )
