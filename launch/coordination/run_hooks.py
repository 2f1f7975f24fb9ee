"""What users hang into a run: when it is called, and what becomes of it."""

import copy
import dataclasses
import functools
import re
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from repertory.components import loggers, signals
from repertory.launch import failures, hooks
from repertory.launch.coordination import hook_threads, kinds
from repertory.launch.runs import session as session_lib

# What a value of a row takes in memory, about.
_BYTES_PER_VALUE = 150


class RunHooks:
  """Calls observers, loggers, and what may end a run early.

  Each has a thread of its own, so that none keeps the coordinator waiting, nor
  another hook. An observer that raises ends the run, and so does what decides
  about an early end; for a logger there is a warning.
  """

  def __init__(self, session: session_lib.Session, coordinator: Any):
    """Calls none yet.

    Args:
      coordinator: Hears what is to become of the run, in other threads.
    """
    self._coordinator = coordinator
    experiment = session.experiment
    self._info_names = experiment.info
    self._timeout_seconds = experiment.timeout_seconds
    # Less than what the watch over a run in one thread allows.
    self._decision_seconds = 0.5 * min(
      experiment.timeout_seconds, experiment.stall_seconds
    )
    self._told: set[str] = set()
    self._end_deadline: float | None = None
    carried = session.hooks
    self._observers = [
      (one, self._make_thread('observers', i, one, self._fail))
      for i, one in enumerate(carried.observers)
    ]
    self._loggers = [
      (one, self._make_thread('loggers', i, one, self._warn_of))
      for i, one in enumerate(carried.loggers)
    ]
    self._stopping: hook_threads.HookThread | None = None
    if carried.stop_when is not None:
      self._stop_when = carried.stop_when
      self._stopping = hook_threads.HookThread(
        'stop_when',
        functools.partial(self._fail, 'stop_when'),
        self._warn,
        idle=lambda: self._ask(coordinator.status()),
      )

  def start(self, session: session_lib.Session, title: str) -> None:
    """Reports the start to all hooks, each with its own copy of the settings.

    Args:
      title: What the display calls the run.
    """
    run = _describe(session, title)
    for observer, thread in self._observers:
      thread.call('on_start', observer.on_start, copy.deepcopy(run))
    for logger, thread in self._loggers:
      start = functools.partial(self._start, logger, thread)
      thread.call('start', start, copy.deepcopy(run))
    self._ask_to_stop()

  def take_episodes(
    self, columns: Mapping[str, np.ndarray], position: Mapping[str, Any]
  ) -> None:
    """Tells of training episodes.

    Args:
      columns: What is logged of them.
      position: Where the run is.
    """
    if not self._observers:
      return
    returns, lengths = columns['episode_return'], columns['episode_length']
    metrics = {name: columns[name] for name in self._info_names}
    for array in (returns, lengths, *metrics.values()):
      array.setflags(write=False)  # It is all observers'.
    total = int(columns['episodes'][-1])
    ended = hooks.Episodes(returns, lengths, total, **position, metrics=metrics)
    for observer, thread in self._observers:
      thread.call(
        'on_episodes',
        observer.on_episodes,
        ended,
        ended.num_bytes,
        hooks.Episodes.join,
      )

  def take_row(self, label: str, row: Mapping[str, Any]) -> None:
    """Tells of a row of the logs; each gets one of its own."""
    num_bytes = _BYTES_PER_VALUE * len(row)
    if label == kinds.LEARNER.name:
      for observer, thread in self._observers:
        thread.call(
          'on_learner_row', observer.on_learner_row, dict(row), num_bytes
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
    """Tells of an evaluation, by its episodes, and asks whether to stop.

    Args:
      position: Where the run is.
    """
    evaluation = hooks.Evaluation(
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
      array.setflags(write=False)  # It is all observers'.
    num_bytes = evaluation.returns.nbytes * (2 + len(metrics))
    for observer, thread in self._observers:
      own = dataclasses.replace(evaluation, metrics=dict(evaluation.metrics))
      thread.call('on_evaluation', observer.on_evaluation, own, num_bytes)
    self._ask_to_stop()

  def wait_for_decision(self, stop: signals.StopSignal) -> None:
    """Waits until it is known whether the last evaluation ends the run.

    If it is not in time, that is a failure.

    Args:
      stop: Ends the wait.

    Raises:
      signals.Stopped: If it was set.
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
    """Tells of the end, the first time; and whom the end waits for.

    An observer that takes too long is a failure, a logger a warning.

    Args:
      outcome: See `hooks.End`.
      reason: Likewise.

    Returns:
      What is waited for, in words; '' if for nothing more.
    """
    if self._end_deadline is None:
      self._end_deadline = time.monotonic() + self._timeout_seconds
      end = hooks.End(outcome, reason, self._coordinator.status())
      self._end_stopping()
      for observer, thread in self._observers:
        thread.end('on_end', observer.on_end, end)
      for logger, thread in self._loggers:
        thread.end('close', logger.close, end)
    threads = [
      *((thread, self._fail) for _, thread in self._observers),
      *((thread, self._warn_of) for _, thread in self._loggers),
    ]
    waiting = [(thread, take) for thread, take in threads if not thread.is_over]
    if time.monotonic() < self._end_deadline:
      told = '; '.join(thread.progress for thread, _ in waiting)
      return f'waiting: {told}' if told else ''
    for thread, take_trouble in waiting:
      thread.drop()
      seconds = f'{self._timeout_seconds:g} seconds'
      take_trouble(
        thread.name, f'It has not ended within {seconds}: {thread.progress}.'
      )
    return ''

  def close(self) -> None:
    """Makes no further calls."""
    for _, thread in [*self._observers, *self._loggers]:
      thread.drop()
    if self._stopping is not None:
      self._stopping.drop()

  def _make_thread(self, setting, index, hook, take_trouble):
    name = f'{setting}[{index}] ({type(hook).__name__})'
    return hook_threads.HookThread(
      name, functools.partial(take_trouble, name), self._warn
    )

  def _start(self, logger, thread, run) -> None:
    try:
      logger.start(run)
    except BaseException:
      thread.drop()
      raise

  def _end_stopping(self) -> None:
    """Asks no more whether to stop; an answer that is not there is late."""
    thread = self._stopping
    if thread is not None:
      if not thread.wait_until_idle(0):
        self._warn(f'the run ends, and {thread.progress}: it is left to itself')
      thread.drop()

  def _ask_to_stop(self) -> None:
    if self._stopping is not None:
      self._stopping.call('a call', self._ask, self._coordinator.status())

  def _ask(self, status: loggers.Status) -> None:
    """Asks whether to end the run, and does."""
    answer = self._stop_when(status)
    if not isinstance(answer, (bool, np.bool_, str)):
      raise TypeError(
        'stop_when must return true or false, or the reason to stop; got '
        f'{answer!r}.'
      )
    if answer:
      reason = answer if isinstance(answer, str) else 'stop_when returned true'
      self._coordinator.stop_early(reason)
      if self._stopping is not None:
        self._stopping.drop()  # There is nothing left to decide.

  def _fail(self, name: str, trouble: str) -> bool:
    cause = f'{name} failed:\n{trouble}'
    self._coordinator.abort(failures.Failure(kinds.COORDINATOR.name, cause))
    return False

  def _warn_of(self, name: str, trouble: str) -> bool:
    """Tells of a trouble, but not again if only its numbers are others."""
    summary = failures.Failure(name, trouble).summary
    alike = f'{name}: {re.sub("[0-9]+", "0", summary)}'
    if alike not in self._told:
      self._told.add(alike)
      self._warn(f'{name}: {summary}')
    return True

  def _warn(self, message: str) -> None:
    self._coordinator.warn(kinds.COORDINATOR.name, message)


def _describe(session: session_lib.Session, title: str) -> hooks.Run:
  """Describes a run for those who look on."""
  told = session.description['experiment']
  settings = {name: told[name] for name in told if told[name] is not None}
  counts = session.counts
  return hooks.Run(
    title,
    session.experiment.directory,
    {**settings, **session.identity, **session.wiring},
    steps=counts['steps'],
    learner_steps=counts['learner_steps'],
    episodes=counts['episodes'],
    elapsed_seconds=session.elapsed_seconds,
    is_resumed=session.is_resumed,
    num_restarts=session.num_restarts,
  )
