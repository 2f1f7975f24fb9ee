"""Callbacks, user loggers and the stop criterion of a run."""

import collections
import copy
import dataclasses
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from repertory.components.runtime import signals
from repertory.launch import failures
from repertory.launch.coordination import kinds
from repertory.launch.experiments import callbacks
from repertory.launch.experiments import session as session_lib

# Interval of calls of the stop criterion.
_ASK_SECONDS = 1.0


# By event: methods of callbacks, and those of loggers.
_OF_CALLBACKS = {
  name: name for name in vars(callbacks.Callback) if name.startswith('on_')
}
_OF_LOGGERS = {'on_start': 'start', 'on_row': 'write', 'on_end': 'close'}


@dataclasses.dataclass(eq=False)
class _Subscriber:
  """Callback, logger or stop criterion; errors of loggers are not fatal."""

  name: str
  target: Any
  methods: Mapping[str, str]  # By event.
  is_fatal: bool
  is_dropped: bool = False


class _Event(NamedTuple):
  """Queued event, with the arguments of its methods.

  For `on_episodes`, several events of episodes, to be joined.
  """

  name: str
  arguments: list[Any]
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
    self._subscribers = [
      _Subscriber(f'{of}[{i}] ({type(one).__name__})', one, methods, is_fatal)
      for of, group, methods, is_fatal in (
        ('callbacks', found.callbacks, _OF_CALLBACKS, True),
        ('loggers', found.loggers, _OF_LOGGERS, False),
      )
      for i, one in enumerate(group)
    ]
    self._stop_when = _Subscriber('stop_when', found.stop_when, {}, True)
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

  def start(self, session: session_lib.Session) -> None:
    """Reports the start to all, each with a copy of the settings."""
    if self._subscribers or not self._stop_when.is_dropped:
      self._ask_to_stop()
      self._put('on_start', _describe(session))
      self._thread.start()

  def take_episodes(
    self, columns: Mapping[str, np.ndarray], position: Mapping[str, Any]
  ) -> None:
    """Reports training episodes, as logged columns, to callbacks."""
    self._put(
      'on_episodes',
      callbacks.EpisodesEvent(
        columns['episode_return'],
        columns['episode_length'],
        int(columns['episodes'][-1]),
        **position,
        metrics={name: columns[name] for name in self._info_names},
      ),
    )

  def take_row(self, label: str, row: Mapping[str, Any]) -> None:
    """Reports a log row, as a copy for each callback and logger."""
    if label == kinds.LEARNER.name:
      self._put('on_learner_row', row)
    self._put('on_row', label, row)

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
    self._put('on_evaluation', evaluation)

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
      self._put('on_end', callbacks.EndEvent(outcome, reason, status))
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

  def _put(self, name: str, *arguments: Any) -> None:
    """Queues an event, which may be merged with the previous one."""
    if not any(name in one.methods for one in self._subscribers):
      return
    with self._has_changed:
      if self._is_ending or self._is_closed:
        return
      last = self._events[-1] if self._events else None
      if last is not None and last.name == name == 'on_episodes':
        last.arguments.extend(arguments)
      else:
        self._events.append(_Event(name, [*arguments], time.monotonic()))
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
    arguments = event.arguments
    if event.name == 'on_episodes':
      arguments = [callbacks.EpisodesEvent.join(arguments)]
    for one in self._subscribers:
      if event.name in one.methods:
        method = one.methods[event.name]
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
    try:
      function(*arguments)
    except BaseException as error:  # SystemExit would end the thread silently.
      failure = failures.of_exception(one.name, error)
      if not self._is_closed:
        one.is_dropped = one.is_fatal or what == 'start'
        if one.is_fatal:
          self._fail(one, failure.cause)
        else:
          self._warn(one, failure.summary)
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


def _describe(session: session_lib.Session) -> callbacks.RunEvent:
  """Describes a run for callbacks and loggers."""
  described = session.description['experiment']
  settings = {k: value for k, value in described.items() if value is not None}
  counts = session.counts
  return callbacks.RunEvent(
    session.title,
    session.experiment.directory,
    {**settings, **session.identity, **session.run_layout},
    steps=counts['steps'],
    learner_steps=counts['learner_steps'],
    episodes=counts['episodes'],
    elapsed_seconds=session.elapsed_seconds,
    is_resumed=session.is_resumed,
    num_restarts=session.num_restarts,
  )
