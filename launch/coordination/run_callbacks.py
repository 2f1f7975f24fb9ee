"""Callbacks, user loggers and the stop criterion of a run."""

import collections
import copy
import dataclasses
import re
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from repertory.components.runtime import signals
from repertory.launch.coordination import kinds
from repertory.launch.experiments import callbacks, failures
from repertory.launch.experiments import session as session_lib

# Interval of calls of the stop criterion.
_ASK_SECONDS = 1.0


@dataclasses.dataclass(eq=False)
class _Subscriber:
  """Callback, logger or stop criterion; errors of loggers are not fatal."""

  name: str
  target: Any
  is_fatal: bool
  is_dropped: bool = False


class _Event(NamedTuple):
  """Queued event, for a method of callbacks and one of loggers ('': none).

  Callbacks get the last payload; several are of episodes, to be joined.
  """

  method: str
  logger_method: str
  payloads: list[Any]
  since: float


class RunCallbacks:
  """Calls the callbacks, loggers and stop criterion of a run.

  One thread makes all calls, so none blocks the coordinator. A callback or stop
  criterion that raises ends the run; a logger that raises causes a warning. If
  a call, or the wait for one, exceeds `timeout_seconds`, the run ends, and no
  further calls are made.
  """

  def __init__(self, session: session_lib.Session, coordinator: Any):
    """Prepares the thread; `start` starts it."""
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
    self._has_changed = threading.Condition()
    self._events: collections.deque[_Event] = collections.deque()
    # Who is being called, what, and since when.
    self._running: tuple[_Subscriber, str, float] | None = None
    # Answers of the stop criterion that were asked for and given.
    self._num_asked, self._num_answered, self._ask_at = 0, 0, 0.0
    self._is_ending = self._is_closed = False
    self._thread = threading.Thread(
      target=self._run, name='callbacks', daemon=True
    )

  def start(self, session: session_lib.Session, title: str) -> None:
    """Reports the start to all, each with a copy of the settings."""
    if self._callbacks or self._loggers or not self._stop_when.is_dropped:
      self._ask_to_stop()
      self._put('on_start', 'start', _describe(session, title))
      self._thread.start()

  def take_episodes(
    self, columns: Mapping[str, np.ndarray], position: Mapping[str, Any]
  ) -> None:
    """Reports training episodes, as logged columns, to callbacks."""
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
    """Reports an evaluation to callbacks, and asks the stop criterion."""
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

    A late answer fails the run. The stop signal ends the wait.
    """

    def is_answered(seconds: float) -> bool:
      with self._has_changed:
        return self._has_changed.wait_for(lambda: not self._is_due, seconds)

    try:
      signals.wait_for(
        is_answered,
        lambda: f'stop_when to return ({self._describe_progress()})',
        self._decision_seconds,
        stop,
      )
    except TimeoutError as error:
      self._give_up(self._stop_when, str(error))

  def end(self, outcome: str, reason: str) -> str:
    """Reports the end; returns a message on calls in progress, at last ''."""
    if not self._is_ending:
      self._stop_when.is_dropped = True
      status = self._coordinator.status()
      self._put('on_end', 'close', callbacks.EndEvent(outcome, reason, status))
      with self._has_changed:
        self._is_ending = True
        self._has_changed.notify_all()
    self._check_delay()
    with self._has_changed:
      if self._is_closed or not self._thread.is_alive():
        return ''
      return f'waiting: {self._describe_progress()}'

  def close(self) -> None:
    """Makes no further calls."""
    with self._has_changed:
      self._is_closed = True
      self._has_changed.notify_all()

  # In any thread.

  @property
  def _is_due(self) -> bool:
    return self._num_answered < self._num_asked

  def _put(self, method: str, logger_method: str, *payload: Any) -> None:
    """Queues an event, which may be merged with the previous one."""
    if not (self._callbacks or self._loggers):
      return
    with self._has_changed:
      if self._is_ending or self._is_closed:
        return
      last = self._events[-1] if self._events else None
      if last is not None and last.method == method == 'on_episodes':
        last.payloads.extend(payload)
      else:
        event = _Event(method, logger_method, [*payload], time.monotonic())
        self._events.append(event)
      self._has_changed.notify_all()
    self._check_delay()

  def _ask_to_stop(self) -> None:
    """Requests an answer of the stop criterion, before queued events."""
    with self._has_changed:
      if not self._stop_when.is_dropped:
        self._num_asked += 1
        self._has_changed.notify_all()

  def _check_delay(self) -> None:
    """Ends the run if a call, or the wait for one, takes too long."""
    with self._has_changed:
      running, now = self._running, time.monotonic()
      if running is None or self._is_closed:
        return
      one, _, since = running
      seconds = now - min([since, *(event.since for event in self._events)])
      progress = self._describe_progress()
    if seconds > self._timeout_seconds:
      self._give_up(
        one, f'It is too slow: {progress}, the first for {seconds:.0f} seconds.'
      )

  def _give_up(self, one: _Subscriber, trouble: str) -> None:
    """Makes no further calls, and ends the run."""
    with self._has_changed:
      if self._is_closed:
        return
      self._is_closed, self._num_answered = True, self._num_asked
      self._has_changed.notify_all()
    self._fail(one, trouble)

  def _describe_progress(self) -> str:
    running = 'callbacks'
    if self._running is not None:
      one, what, _ = self._running
      running = f'{one.name} is in {what}'
    return f'{running}, with {len(self._events)} events queued'

  # In the thread.

  def _run(self) -> None:
    while not self._is_closed:
      asks = not self._stop_when.is_dropped
      left = self._ask_at - time.monotonic()
      if asks and (self._is_due or left <= 0):
        self._call(self._stop_when, 'a call', self._ask)
        self._ask_at = time.monotonic() + _ASK_SECONDS
      with self._has_changed:
        if not self._events:
          if self._is_ending:
            return
          if not self._is_due:
            self._has_changed.wait(max(0.0, left) if asks else None)
          continue
        event = self._events.popleft()
      self._pass_on(event)

  def _pass_on(self, event: _Event) -> None:
    """Calls all subscribers of an event, each with its own copy of it."""
    payload = event.payloads
    if event.method == 'on_episodes':
      payload = [callbacks.EpisodesEvent.join(payload)]
    for subscribers, method, arguments in (
      (self._callbacks, event.method, payload[-1:]),
      (self._loggers, event.logger_method, payload),
    ):
      for one in subscribers if method else ():
        function = getattr(one.target, method)
        self._call(one, method, function, *map(_copy, arguments))

  def _call(
    self,
    one: _Subscriber,
    what: str,
    function: Callable[..., Any],
    *arguments: Any,
  ) -> None:
    with self._has_changed:
      if one.is_dropped or self._is_closed:
        return
      num_asked = self._num_asked  # A later one is of a later evaluation.
      self._running = one, what, time.monotonic()
    trouble = ''
    try:
      function(*arguments)
    except BaseException:  # SystemExit would end the thread silently.
      trouble = traceback.format_exc()
    if trouble and not self._is_closed:
      one.is_dropped = one.is_fatal or what == 'start'
      if one.is_fatal:
        self._fail(one, trouble)
      else:
        self._warn(one, failures.Failure(one.name, trouble).summary)
    with self._has_changed:
      self._running = None
      if one is self._stop_when:
        self._num_answered = num_asked
      self._has_changed.notify_all()

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

  def _fail(self, one: _Subscriber, trouble: str) -> None:
    cause = f'{one.name} failed:\n{trouble}'
    self._coordinator.abort(failures.Failure(kinds.COORDINATOR.name, cause))

  def _warn(self, one: _Subscriber, summary: str) -> None:
    """Warns once of an error, whatever numbers it has."""
    key = f'{one.name}: {re.sub("[0-9]+", "0", summary)}'
    if key not in self._warned:
      self._warned.add(key)
      warning = f'{one.name}: {summary}'
      self._coordinator.warn(kinds.COORDINATOR.name, warning)


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
