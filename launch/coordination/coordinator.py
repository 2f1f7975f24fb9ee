"""Counts, logs, and tells everybody what is to be done.

In one process it is called directly, else from others; so its public methods
take and return plain values and records of them.
"""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from absl import logging

from repertory.components import callers, loggers, replay, signals
from repertory.launch import failures
from repertory.launch.coordination import (
  episodes,
  evaluations,
  kinds,
  leases,
  logs,
  observing,
  phases,
  progress,
  rates,
  reports,
  roster,
  run_hooks,
  statuses,
)
from repertory.launch.runs import session as session_lib


class Coordinator:
  """The one place that knows how far a run is."""

  def __init__(
    self,
    session: session_lib.Session,
    title: str,
    max_restarts: int = 0,
    clock: Callable[[], float] = time.monotonic,
    admission: callers.Admission | None = None,
  ):
    """Goes on counting where the resumed run ended.

    Args:
      title: What the display calls it.
      max_restarts: How often one node may be started again within
        `restarts.WINDOW_SECONDS`; 0 where the launcher cannot.
      clock: Tells seconds.
      admission: Is told who is replaced.
    """
    experiment = session.experiment
    self._session = session
    self._title = title
    self._progress = progress.Progress(session, clock)
    self._leases = leases.StepLeases(
      experiment.max_steps, experiment.num_actors
    )
    self._roster = roster.Roster(
      max_restarts, clock, session.num_restarts, experiment.deterministic
    )
    self._admission = admission or callers.Admission()
    self._lock = threading.RLock()
    self._phases = phases.Phases()
    self._message = session.message
    self._episodes = episodes.Episodes(session)
    self._speed = rates.Speed(
      experiment.max_steps, self._progress.learner_steps, clock
    )
    self._gauges = statuses.Gauges(session.tables)
    self._evaluations = evaluations.Evaluations(session)
    self._hooks = run_hooks.RunHooks(session, self)
    self._logs = logs.RunLogs(
      session.log_directory,
      self._warn_of_logs,
      session.counts['runs'],
      self._hooks.take_row,
      experiment.episode_rows,
    )
    if self._evaluations.warning:
      self.warn(kinds.COORDINATOR.name, self._evaluations.warning)
    if (failure := session.restarted_after) is not None:
      self._logs.note(failure.node, {'restarted_after': failure.told})
    self._hooks.start(session, title)

  def expect(
    self, nodes: Sequence[str], doing: str = '', seconds: float = 0.0
  ) -> None:
    """Notes which nodes are being started, what each is at, and since when."""
    with self._lock:
      self._progress.begin_earlier(seconds)
      self._roster.expect(nodes, doing, seconds)
      self._phases.go_through(self._roster.have_finished)

  def register(self, node: str, description: Mapping[str, Any]) -> None:
    """Notes that a node runs, and with what; see `logs/nodes.jsonl`.

    Args:
      description: With what; 'address' is where others find it, and 'host' on
        which of several hosts it is.
    """
    with self._lock:
      self._roster.register(
        node, description.get('address'), description.get('host')
      )
      self._logs.note(node, description)

  def tell_start(self, node: str, doing: str) -> None:
    """Notes what a node is at that starts, for the display."""
    with self._lock:
      self._roster.tell_start(node, doing)

  def address_of(self, node: str) -> str | None:
    """Returns where a node listens; None if it does not, or not yet."""
    with self._lock:
      return self._roster.address_of(node)

  def warn(self, node: str, message: str) -> None:
    """Notes what the user should know although the run goes on."""
    with self._lock:
      self._message = message
      self._logs.note(node, {'warning': message})

  def acquire_steps(self, node: str, wanted: int) -> int:
    """Grants environment steps to an actor; see `StepLeases.acquire`."""
    with self._lock:
      if not self._phases.has_steps_to_take:
        return 0
      return self._leases.acquire(node, wanted, self._progress.steps)

  def return_steps(self, node: str, unused: int) -> None:
    """Takes back granted steps that were not taken."""
    with self._lock:
      self._leases.give_back(node, unused)

  def report_actor(
    self, node: str, report: reports.ActorReport
  ) -> reports.Directive:
    """Takes what an actor did since it reported last."""
    with self._lock:
      self._progress.add_steps(report.steps)
      self._leases.use(node, report.steps)
      self._roster.hear(node, report.total_steps, report.environment_seconds)
      if report.episodes:
        position = self._progress.position
        columns = self._episodes.take(report.episodes, position)
        self._logs.write_episodes(columns)
        self._hooks.take_episodes(columns, position)
      self._gauges.take_actor(node, report)
      return self.directive()

  def report_inference(
    self, node: str, version: int, age_seconds: float, row: Mapping[str, float]
  ) -> reports.Directive:
    """Takes what an inference node did since it reported last."""
    with self._lock:
      self._roster.hear(node)
      self._gauges.take_version(node, version, age_seconds)
      self._gauges.take_inference(node, row)
      self._logs.write(
        'inference',
        {**self._progress.position, 'node': node, 'version': version, **row},
      )
      return self.directive()

  def report_targets(
    self, node: str, row: Mapping[str, float]
  ) -> reports.Directive:
    """Takes what a Bellman updater does: 'targets' so far, and how fast."""
    with self._lock:
      self._roster.hear(node, row['targets'])
      self._gauges.take_targets(node, row)
      position = self._progress.position
      self._logs.write('bellman_updaters', {**position, 'node': node, **row})
      return self.directive()

  def report_learner(
    self,
    node: str,
    learner_steps: int,
    tables: Mapping[str, replay.TableStatus],
  ) -> reports.Directive:
    """Takes a learner's total of updates, and the state of its tables."""
    with self._lock:
      self._roster.hear(node, learner_steps)
      self._progress.set_learner_steps(learner_steps)
      self._gauges.tables = tables
      return self.directive()

  def write(self, label: str, row: Mapping[str, Any]) -> None:
    """Logs a row of 'learner', of a table or of 'evaluator'."""
    with self._lock:
      self._gauges.take_row(label, row)
      self._logs.write(label, {**self._progress.position, **row})

  def report_evaluation(
    self,
    returns: Sequence[float],
    lengths: Sequence[int],
    metrics: Mapping[str, Sequence[float]] | None = None,
  ) -> bool:
    """Logs an evaluation.

    Args:
      returns: Those of its episodes.
      lengths: Likewise.
      metrics: The experiment's own metrics likewise, by name.

    Returns:
      Whether it is the best so far: then `keep_best` is to be called.
    """
    metrics = metrics or {}
    with self._lock:
      row, is_best = self._evaluations.take(
        returns, lengths, metrics, self._progress.steps
      )
      position = self._progress.position
      self._logs.write('evaluator', {**position, **row})
      self._progress.get_on()
      self._hooks.take_evaluation(returns, lengths, metrics, is_best, position)
    return is_best

  def keep_best(self, node: str, policy: Mapping[str, np.ndarray]) -> None:
    """Keeps the policy of the evaluation that was reported last.

    Args:
      policy: What was evaluated, see `learners.save_exported`.
    """
    if warning := self._evaluations.keep(policy, self.save()):
      self.warn(node, warning)

  def poll(
    self, node: str, environment_seconds: float = 0.0
  ) -> reports.Directive:
    """Returns what is to be done, to a node with nothing to report.

    Args:
      environment_seconds: How long its environments have been at a step.
    """
    with self._lock:
      self._roster.hear(node, environment_seconds=environment_seconds)
      return self.directive()

  def directive(self) -> reports.Directive:
    """Returns what is to be done."""
    with self._lock:
      return reports.Directive(
        self._phases.phase,
        self._progress.steps,
        self._progress.learner_steps,
        self._roster.is_acting_delayed(),
        bool(self._phases.stopped_early),
      )

  def finish(self, node: str) -> None:
    """Notes that a node has done its part."""
    with self._lock:
      self._roster.finish(node)
      self._leases.drop(node)
      self._phases.go_through(self._roster.have_finished)

  def fail(self, failure: failures.Failure) -> None:
    """Ends the run because a node failed; the first failure is told.

    But one that can be started again is only noted, until `lose`.
    """
    with self._lock:
      if not (self._phases.is_going_on and self._roster.keep_cause(failure)):
        self._end(failure)

  def abort(self, failure: failures.Failure) -> None:
    """Ends the run, whatever could be started again."""
    with self._lock:
      self._end(failure)

  def lose(self, failure: failures.Failure) -> bool:
    """Takes note that a node's process has ended before its part was done.

    Args:
      failure: How it ended; what the node itself told goes before that.

    Returns:
      Whether it is to be started again. If not, and it matters, the run ends.
    """
    with self._lock:
      node = failure.node
      failure = self._roster.take_cause(failure)
      if self._roster.has_finished(node) or not self._phases.is_going_on:
        return False
      if not self._roster.may_restart(node):
        self._end(failure)
        return False
      self._admission.replace(node, self._roster.restart(node))
      self._leases.drop(node)
      self._gauges.forget(node)
      self._message = f'{node} was started again: {failure.summary}'
      self._logs.note(node, {'restarted_after': failure.cause})
      return True

  def stop(self, reason: str) -> None:
    """Ends the run early; nodes save what is to be saved."""
    with self._lock:
      if self._phases.stop():
        self._message = reason

  def stop_early(self, reason: str) -> None:
    """Lets the run end as if all its steps had been taken.

    What was lived is learned from, saved and evaluated.

    Args:
      reason: Why, for the user.
    """
    with self._lock:
      if self._phases.stop_early(reason):
        self._message = f'stopped early: {reason}'

  def wait_for_decision(self, stop: signals.StopSignal) -> None:
    """Waits until it is known whether the last evaluation ends the run."""
    self._hooks.wait_for_decision(stop)

  def end_hooks(self) -> str:
    """Lets observers and loggers come to their end; called until they have.

    Returns:
      Which of them are waited for, in words; '' if none is.
    """
    with self._lock:
      self._logs.flush()
      end = self._phases.describe_end(self._message)
    return self._hooks.end(*end)

  def failure(self) -> failures.Failure | None:
    """Returns why the run failed, if it did."""
    return self._phases.failure

  def have_actors_finished(self) -> bool:
    """Returns whether all actors have done their part."""
    with self._lock:
      return self._roster.have_finished(reports.ACTING)

  def observe(self) -> reports.Observation:
    """Returns what the launcher goes by."""
    status, experiment = self.status(), self._session.experiment
    with self._lock:
      return observing.observe(
        status, self._phases, self._progress, self._roster, experiment
      )

  def describe_nodes(self) -> Mapping[str, str]:
    """Says of each node how it does, for a report."""
    with self._lock:
      return self._roster.describe()

  def save(self) -> dict[str, Any]:
    """Returns what a checkpoint holds of the run as a whole."""
    with self._lock:
      return {
        'experiment': self._session.identity,
        'initial_from': self._session.initial,
        **self._progress.save(self._episodes.count),
      }

  def status(self) -> loggers.Status:
    """Returns what the display shows."""
    with self._lock:
      now, is_acting = self._progress, self._phases.has_steps_to_take
      return loggers.Status(
        title=self._title,
        max_steps=self._session.experiment.max_steps,
        **now.position,
        **self._episodes.figures(),
        **self._speed.measure(now.steps, now.learner_steps, is_acting),
        **self._gauges.figures(now.learner_steps),
        **self._evaluations.figures(),
        **self._roster.figures(now.elapsed_seconds),
        message=self._message,
        stopped_early=self._phases.stopped_early,
      )

  def close(self) -> None:
    """Writes what the logs still hold back."""
    self._hooks.close()
    with self._lock:
      self._logs.close()

  def _end(self, failure: failures.Failure) -> None:
    self._roster.fail(failure.node)
    if self._phases.fail(failure):
      self._message = f'{failure.node} failed'

  def _warn_of_logs(self, message: str) -> None:
    """Tells what the logs may have no room for."""
    logging.warning('%s', message)
    self._message = ' '.join(filter(None, [self._session.message, message]))
