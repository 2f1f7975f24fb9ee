"""Callbacks, user loggers and the stop criterion of a run."""

import collections
import copy
import dataclasses
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from repertory.components.runtime import signals
from repertory.launch import failures
from repertory.launch.coordination import kinds
from repertory.launch.experiments import callbacks
from repertory.launch.experiments import session as session_lib

_STOP_WHEN = 'stop_when'
# By event.
_CALLBACK_METHODS = {
  name: name for name in vars(callbacks.Callback) if name.startswith('on_')
}
_LOGGER_METHODS = {'on_start': 'start', 'on_row': 'write', 'on_end': 'close'}


class _Event(NamedTuple):
  """Queued event; `on_episodes` may have several reports to be joined."""

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
    # By event: name of the callback or logger, and its method.
    self._calls: dict[str, list[tuple[str, str, Any]]] = {}
    for of, methods in (
      ('callbacks', _CALLBACK_METHODS),
      ('loggers', _LOGGER_METHODS),
    ):
      for index, one in enumerate(getattr(experiment, of)):
        name = f'{of}[{index}] ({type(one).__name__})'
        for event, method in methods.items():
          call = name, method, getattr(one, method)
          self._calls.setdefault(event, []).append(call)
    self._stop_when: Any = experiment.stop_when
    if self._stop_when is not None:
      self._calls['on_status'] = [(_STOP_WHEN, 'a call', self._ask)]
    self._dropped: set[str] = set()  # Those that are not called any more.
    self._warned: set[tuple[str, type]] = set()
    self._has_changed = threading.Condition()
    self._events: collections.deque[_Event] = collections.deque()
    # Who is being called, what, and since when.
    self._running: tuple[str, str, float] | None = None
    self._is_ending = self._is_closed = False
    self._thread = threading.Thread(
      target=self._run, name='callbacks', daemon=True
    )

  def start(self, session: session_lib.Session) -> None:
    """Reports the start."""
    if self._calls:
      self._put('on_start', _describe(session))
      self._put('on_status')
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
    """Reports a log row."""
    if label == kinds.LEARNER.name:
      self._put('on_learner_row', row)
    if label == kinds.REPLAY.name:  # About once a second.
      self._put('on_status')
    self._put('on_row', label, row)

  def take_evaluation(self, evaluation: callbacks.EvaluationEvent) -> None:
    """Reports an evaluation to callbacks, and asks the stop criterion."""
    self._put('on_status')
    self._put('on_evaluation', evaluation)

  def wait_for_decision(self, stop: signals.StopSignal) -> None:
    """Blocks until the stop criterion has answered on the last evaluation.

    A late answer fails the run. The stop signal ends the wait.
    """

    def has_decided() -> bool:
      is_asked = self._running is not None and self._running[0] == _STOP_WHEN
      is_due = any(event.name == 'on_status' for event in self._events)
      return self._is_closed or not (is_asked or is_due)

    def wait(seconds: float) -> bool:
      with self._has_changed:
        return self._has_changed.wait_for(has_decided, seconds)

    try:
      signals.wait_for(
        wait,
        lambda: f'stop_when to return ({self._describe_progress()})',
        self._decision_seconds,
        stop,
      )
    except TimeoutError as error:
      self._give_up(_STOP_WHEN, str(error))

  def end(self, outcome: str, reason: str) -> str:
    """Reports the end; returns a message on calls in progress, at last ''."""
    if not self._is_ending:
      self._dropped.add(_STOP_WHEN)
      status = self._coordinator.status()
      self._put('on_end', callbacks.EndEvent(outcome, reason, status))
      with self._has_changed:
        self._is_ending = True
        self._has_changed.notify_all()
    self._check_delay()
    if self._is_closed or not self._thread.is_alive():
      return ''
    return f'waiting: {self._describe_progress()}'

  def close(self) -> None:
    """Makes no further calls."""
    with self._has_changed:
      self._is_closed = True
      self._has_changed.notify_all()

  # In any thread.

  def _put(self, name: str, *arguments: Any) -> None:
    """Queues an event; reports of episodes in a row become one.

    The stop criterion precedes other events, and needs one call for several.
    """
    self._check_delay()
    with self._has_changed:
      if self._is_ending or self._is_closed or name not in self._calls:
        return
      event = _Event(name, [*arguments], time.monotonic())
      if name == 'on_status':
        is_due = bool(self._events) and self._events[0].name == name
        if not (is_due or _STOP_WHEN in self._dropped):
          self._events.appendleft(event)
      elif self._events and self._events[-1].name == name == 'on_episodes':
        self._events[-1].arguments.extend(arguments)
      else:
        self._events.append(event)
      self._has_changed.notify_all()

  def _check_delay(self) -> None:
    """Ends the run if a call, or the wait for one, takes too long."""
    with self._has_changed:
      if self._running is None:
        return
      name, _, since = self._running
      since = min([since, *(event.since for event in self._events)])
      seconds = time.monotonic() - since
      progress = self._describe_progress()
    if seconds > self._timeout_seconds:
      self._give_up(
        name,
        f'It is too slow: {progress}, the first for {seconds:.0f} seconds.',
      )

  def _give_up(self, name: str, trouble: str) -> None:
    """Makes no further calls, and ends the run."""
    if not self._is_closed:
      self.close()
      self._fail(name, trouble)

  def _fail(self, name: str, trouble: str) -> None:
    cause = f'{name} failed:\n{trouble}'
    self._coordinator.abort(failures.Failure(kinds.COORDINATOR.name, cause))

  def _describe_progress(self) -> str:
    name, what, _ = self._running or ('callbacks', 'no call', 0.0)
    return f'{name} is in {what}, with {len(self._events)} events queued'

  # In the thread.

  def _run(self) -> None:
    while (event := self._take()) is not None:
      arguments = event.arguments
      if event.name == 'on_episodes':
        arguments = [_join(arguments)]
      for name, method, function in self._calls[event.name]:
        if name in self._dropped or self._is_closed:
          continue
        self._running = name, method, time.monotonic()
        try:
          function(*copy.deepcopy(arguments))
        except BaseException as error:  # Also SystemExit, which threads ignore.
          if not self._is_closed:
            self._handle(name, method, error)
      with self._has_changed:
        self._running = None
        self._has_changed.notify_all()

  def _take(self) -> _Event | None:
    """Waits for the next event, whose first call begins; None at the end."""
    with self._has_changed:
      self._has_changed.wait_for(
        lambda: self._events or self._is_ending or self._is_closed
      )
      if self._is_closed or not self._events:
        return None
      event = self._events.popleft()
      name, method, _ = self._calls[event.name][0]
      self._running = name, method, time.monotonic()
      return event

  def _handle(self, name: str, what: str, error: BaseException) -> None:
    """Ends the run after an error, or warns once of a logger's."""
    failure = failures.of_exception(name, error)
    is_fatal = not name.startswith('loggers')
    if is_fatal or what == 'start':
      self._dropped.add(name)
    if is_fatal:
      self._fail(name, failure.cause)
    elif (name, type(error)) not in self._warned:
      self._warned.add((name, type(error)))
      warning = f'{name}: {failure.summary}'
      self._coordinator.warn(kinds.COORDINATOR.name, warning)

  def _ask(self) -> None:
    """Calls the stop criterion, and ends the run if it says so."""
    answer = self._stop_when(self._coordinator.status())
    if not isinstance(answer, (bool, np.bool_, str)):
      raise TypeError(
        'stop_when must return true or false, or the reason to stop, got '
        f'{answer!r}.'
      )
    if answer:
      self._dropped.add(_STOP_WHEN)
      self._coordinator.stop_early(
        answer if isinstance(answer, str) else 'stop_when returned true'
      )


def _join(
  parts: Sequence[callbacks.EpisodesEvent],
) -> callbacks.EpisodesEvent:
  """Concatenates several reports of episodes."""
  return dataclasses.replace(
    parts[-1],
    returns=np.concatenate([one.returns for one in parts]),
    lengths=np.concatenate([one.lengths for one in parts]),
    metrics={
      name: np.concatenate([one.metrics[name] for one in parts])
      for name in parts[-1].metrics
    },
  )


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
