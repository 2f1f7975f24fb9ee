"""Callbacks, user loggers and the stop criterion of a run."""

import copy
import dataclasses
import functools
import re
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from repertory.components import loggers
from repertory.components.runtime import signals
from repertory.launch.coordination import callback_threads, kinds
from repertory.launch.experiments import callbacks, failures
from repertory.launch.opening import session as session_lib

# Approximate memory of one value of a row.
_BYTES_PER_VALUE = 150


class RunCallbacks:
  """Calls the callbacks, loggers and stop criterion of a run.

  Each has its own thread, so none blocks the coordinator or another callback. A
  callback or stop criterion that raises ends the run; a logger that raises
  causes a warning.
  """

  def __init__(self, session: session_lib.Session, coordinator: Any):
    """Prepares one thread for each.

    Args:
      coordinator: Coordinator to warn, stop or abort from these threads.
    """
    self._coordinator = coordinator
    experiment = session.experiment
    self._info_names = experiment.info
    self._timeout_seconds = experiment.timeout_seconds
    # Below the watchdog limit of a run in one thread.
    self._decision_seconds = 0.5 * min(
      experiment.timeout_seconds, experiment.stall_seconds
    )
    self._warned: set[str] = set()
    self._end_deadline: float | None = None
    carried = session.callback_list
    self._callbacks = [
      (one, self._make_thread('callbacks', i, one, self._fail))
      for i, one in enumerate(carried.callbacks)
    ]
    self._loggers = [
      (one, self._make_thread('loggers', i, one, self._warn_of))
      for i, one in enumerate(carried.loggers)
    ]
    self._stopping: callback_threads.CallbackThread | None = None
    if carried.stop_when is not None:
      self._stop_when = carried.stop_when
      self._stopping = callback_threads.CallbackThread(
        'stop_when',
        functools.partial(self._fail, 'stop_when'),
        self._warn,
        idle=lambda: self._ask(coordinator.status()),
      )

  def start(self, session: session_lib.Session, title: str) -> None:
    """Reports the start to all callbacks, each with a copy of the settings.

    Args:
      title: Display title of the run.
    """
    run = _describe(session, title)
    for callback, thread in self._callbacks:
      thread.call('on_start', callback.on_start, copy.deepcopy(run))
    for logger, thread in self._loggers:
      start = functools.partial(self._start, logger, thread)
      thread.call('start', start, copy.deepcopy(run))
    self._ask_to_stop()

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
    for array in (returns, lengths, *metrics.values()):
      array.setflags(write=False)  # Shared by all callbacks.
    total = int(columns['episodes'][-1])
    ended = callbacks.EpisodesEvent(
      returns, lengths, total, **position, metrics=metrics
    )
    for callback, thread in self._callbacks:
      thread.call(
        'on_episodes',
        callback.on_episodes,
        ended,
        ended.num_bytes,
        callbacks.EpisodesEvent.join,
      )

  def take_row(self, label: str, row: Mapping[str, Any]) -> None:
    """Reports a log row, as a copy for each callback and logger."""
    num_bytes = _BYTES_PER_VALUE * len(row)
    if label == kinds.LEARNER.name:
      for callback, thread in self._callbacks:
        thread.call(
          'on_learner_row', callback.on_learner_row, dict(row), num_bytes
        )
    for logger, thread in self._loggers:
      write = functools.partial(logger.write, label)
      thread.call('write', write, dict(row), num_bytes)

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
    for array in (
      evaluation.returns,
      evaluation.lengths,
      *evaluation.metrics.values(),
    ):
      array.setflags(write=False)  # Shared by all callbacks.
    num_bytes = evaluation.returns.nbytes * (2 + len(metrics))
    for callback, thread in self._callbacks:
      own = dataclasses.replace(evaluation, metrics=dict(evaluation.metrics))
      thread.call('on_evaluation', callback.on_evaluation, own, num_bytes)
    self._ask_to_stop()

  def wait_for_decision(self, stop: signals.StopSignal) -> None:
    """Blocks until the stop criterion has answered on the last evaluation.

    A late answer fails the run.

    Args:
      stop: Signal that ends the wait.

    Raises:
      signals.Stopped: If the stop signal was set.
    """
    thread = self._stopping
    if thread is None:
      return
    try:
      signals.wait_for(
        thread.wait_until_idle,
        lambda: 'stop_when to return',
        self._decision_seconds,
        stop,
      )
    except TimeoutError as error:
      thread.drop()
      self._fail(thread.name, str(error))

  def end(self, outcome: str, reason: str) -> str:
    """Reports the end on the first call; returns which threads still run.

    A callback that takes too long fails the run, a logger causes a warning.

    Args:
      outcome: Outcome as in `callbacks.EndEvent`.
      reason: Reason as in `callbacks.EndEvent`.

    Returns:
      Message on the running threads; '' once all have ended.
    """
    if self._end_deadline is None:
      self._end_deadline = time.monotonic() + self._timeout_seconds
      end = callbacks.EndEvent(outcome, reason, self._coordinator.status())
      self._end_stopping()
      for callback, thread in self._callbacks:
        thread.end('on_end', callback.on_end, end)
      for logger, thread in self._loggers:
        thread.end('close', logger.close, end)
    threads = [
      *((thread, self._fail) for _, thread in self._callbacks),
      *((thread, self._warn_of) for _, thread in self._loggers),
    ]
    waiting = [(thread, take) for thread, take in threads if not thread.is_over]
    if time.monotonic() < self._end_deadline:
      pending = '; '.join(thread.progress for thread, _ in waiting)
      return f'waiting: {pending}' if pending else ''
    for thread, take_trouble in waiting:
      thread.drop()
      seconds = f'{self._timeout_seconds:g} seconds'
      take_trouble(
        thread.name, f'It has not ended within {seconds}: {thread.progress}.'
      )
    return ''

  def close(self) -> None:
    """Makes no further calls."""
    for _, thread in [*self._callbacks, *self._loggers]:
      thread.drop()
    if self._stopping is not None:
      self._stopping.drop()

  def _make_thread(self, setting, index, callback, take_trouble):
    name = f'{setting}[{index}] ({type(callback).__name__})'
    return callback_threads.CallbackThread(
      name, functools.partial(take_trouble, name), self._warn
    )

  def _start(self, logger, thread, run) -> None:
    try:
      logger.start(run)
    except BaseException:
      thread.drop()
      raise

  def _end_stopping(self) -> None:
    """Drops the stop criterion; a pending answer is ignored."""
    thread = self._stopping
    if thread is not None:
      if not thread.wait_until_idle(0):
        self._warn(f'the run ends without its answer: {thread.progress}')
      thread.drop()

  def _ask_to_stop(self) -> None:
    if self._stopping is not None:
      self._stopping.call('a call', self._ask, self._coordinator.status())

  def _ask(self, status: loggers.Status) -> None:
    """Calls the stop criterion, and ends the run if it says so."""
    answer = self._stop_when(status)
    if not isinstance(answer, (bool, np.bool_, str)):
      raise TypeError(
        'stop_when must return true or false, or the reason to stop, got '
        f'{answer!r}.'
      )
    if answer:
      reason = answer if isinstance(answer, str) else 'stop_when returned true'
      self._coordinator.stop_early(reason)
      if self._stopping is not None:
        self._stopping.drop()

  def _fail(self, name: str, trouble: str) -> bool:
    cause = f'{name} failed:\n{trouble}'
    self._coordinator.abort(failures.Failure(kinds.COORDINATOR.name, cause))
    return False

  def _warn_of(self, name: str, trouble: str) -> bool:
    """Warns of an error once, whatever numbers it contains."""
    summary = failures.Failure(name, trouble).summary
    key = f'{name}: {re.sub("[0-9]+", "0", summary)}'
    if key not in self._warned:
      self._warned.add(key)
      self._warn(f'{name}: {summary}')
    return True

  def _warn(self, message: str) -> None:
    self._coordinator.warn(kinds.COORDINATOR.name, message)


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
