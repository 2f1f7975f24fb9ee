"""Coordinator: global counters, logs, run phases, failure handling.

Nodes call it directly or from other processes. So its public methods take and
return plain values and dataclasses of them.
"""

import dataclasses
import itertools
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from absl import logging

from repertory.components import loggers, replay
from repertory.components.network import callers
from repertory.components.runtime import signals
from repertory.launch import failures
from repertory.launch.coordination import (
  evaluations,
  kinds,
  logs,
  node_registry,
  reports,
  run_callbacks,
  statuses,
)
from repertory.launch.experiments import callbacks
from repertory.launch.experiments import session as session_lib

# Maximum environment steps of one grant.
_MAX_GRANT = 1000


class Coordinator:
  """Holds the global state of a run, and serves all its nodes."""

  def __init__(
    self,
    session: session_lib.Session,
    max_restarts: int = 0,
    clock: Callable[[], float] = time.monotonic,
    fencing: callers.Fencing | None = None,
  ):
    """Continues the counts of a resumed run.

    A node may be restarted `max_restarts` times within
    `node_registry.WINDOW_SECONDS`.
    """
    experiment = session.experiment
    self._session = session
    self._steps = session.counts['steps']
    self._learner_steps = session.counts['learner_steps']
    self._clock = clock
    self._began_at = clock() - session.elapsed_seconds
    self._progressed_at = clock()
    self._phase = reports.ACTING
    self._failure: failures.Failure | None = None
    self._stopped_early = ''
    self._step_budget = StepBudget(experiment.max_steps, experiment.num_actors)
    self._node_registry = node_registry.NodeRegistry(
      max_restarts, clock, session.num_restarts
    )
    self._fencing = fencing or callers.Fencing()
    self._lock = threading.RLock()
    self._message = session.message
    self._gauges = statuses.Gauges(session, clock)
    self._evaluations = evaluations.Evaluations(session)
    self._callbacks = run_callbacks.RunCallbacks(session, self)
    self._logs = logs.RunLogs(
      session.log_directory,
      self._warn_of_logs,
      session.counts['runs'],
      self._callbacks.take_row,
      experiment.episode_rows,
    )
    if self._evaluations.warning:
      self.warn(kinds.COORDINATOR.name, self._evaluations.warning)
    if (failure := session.restarted_after) is not None:
      self._logs.note(failure.node, {'restarted_after': failure.message})
    self._callbacks.start(session)

  def expect(
    self, nodes: Sequence[str], doing: str = '', seconds: float = 0.0
  ) -> None:
    """Adds nodes that are being started; see `NodeRegistry.expect`."""
    with self._lock:
      self._began_at -= seconds
      self._node_registry.expect(nodes, doing, seconds)
      self._advance_phase()

  def register(self, node: str, description: Mapping[str, Any]) -> None:
    """Marks a node as running, and logs its description."""
    with self._lock:
      self._node_registry.register(node, description.get('address'))
      self._logs.note(node, description)

  def report_start(self, node: str, doing: str) -> None:
    """Stores the current step of a node's start, for the display."""
    with self._lock:
      self._node_registry.report_start(node, doing)

  def address_of(self, node: str) -> str | None:
    """Returns the address of a node's server; None until it registers."""
    with self._lock:
      return self._node_registry.address_of(node)

  def warn(self, node: str, message: str) -> None:
    """Logs and displays a warning; the run continues."""
    with self._lock:
      self._message = message
      self._logs.note(node, {'warning': message})

  def acquire_steps(self, node: str, wanted: int) -> int:
    """Grants environment steps to an actor; see `StepBudget`."""
    with self._lock:
      if not self._is_acting():
        return 0
      return self._step_budget.acquire(node, wanted, self._steps)

  def return_steps(self, node: str, unused: int) -> None:
    """Takes back granted steps that were not taken."""
    with self._lock:
      self._step_budget.use(node, unused)

  def report_actor(
    self, node: str, report: reports.ActorReport
  ) -> reports.HeartbeatReply:
    """Handles the heartbeat of an actor."""
    with self._lock:
      self._steps += report.steps
      if report.steps:
        self._progressed_at = self._clock()
      self._step_budget.use(node, report.steps)
      self._node_registry.hear(
        node, report.total_steps, report.environment_seconds
      )
      if report.episodes:
        position = self._position()
        columns = self._gauges.take_episodes(report.episodes, position)
        self._logs.write_episodes(columns)
        self._callbacks.take_episodes(columns, position)
      self._gauges.take_actor(node, report)
      return self.reply()

  def report_row(
    self, label: str, node: str, row: Mapping[str, float]
  ) -> reports.HeartbeatReply:
    """Handles a heartbeat of an inference node or updater, with a log row."""
    with self._lock:
      self._node_registry.hear(node, row.get('targets'))
      self.write(label, {'node': node, **row})
      return self.reply()

  def report_learner(
    self,
    node: str,
    learner_steps: int,
    tables: Mapping[str, replay.TableInfo],
  ) -> reports.HeartbeatReply:
    """Handles the heartbeat of a learner."""
    with self._lock:
      self._node_registry.hear(node, learner_steps)
      if learner_steps != self._learner_steps:
        self._progressed_at = self._clock()
      self._learner_steps = learner_steps
      self._gauges.tables = tables
      return self.reply()

  def write(self, label: str, row: Mapping[str, Any]) -> None:
    """Logs a row of the learner, a table or the evaluator."""
    with self._lock:
      self._gauges.take_row(label, row)
      self._logs.write(label, {**self._position(), **row})

  def report_evaluation(
    self,
    returns: Sequence[float],
    lengths: Sequence[int],
    metrics: Mapping[str, Sequence[float]] | None = None,
  ) -> bool:
    """Logs an evaluation; if it returns True, the caller must `keep_best`."""
    metrics = metrics or {}
    with self._lock:
      row, is_best = self._evaluations.take(
        returns, lengths, metrics, self._steps
      )
      position = self._position()
      self._logs.write('evaluator', {**position, **row})
      self._progressed_at = self._clock()
      self._callbacks.take_evaluation(
        callbacks.EvaluationEvent(
          np.array(returns),
          np.array(lengths),
          {name: np.array(values) for name, values in metrics.items()},
          is_best,
          **position,
        )
      )
    return is_best

  def keep_best(self, node: str, policy: Mapping[str, np.ndarray]) -> None:
    """Saves the policy of the latest evaluation as the best policy."""
    if warning := self._evaluations.keep(policy, self.save()):
      self.warn(node, warning)

  def poll(
    self, node: str, environment_seconds: float = 0.0
  ) -> reports.HeartbeatReply:
    """Handles a heartbeat without figures."""
    with self._lock:
      self._node_registry.hear(node, environment_seconds=environment_seconds)
      return self.reply()

  def reply(self) -> reports.HeartbeatReply:
    """Returns the reply to a heartbeat."""
    with self._lock:
      return reports.HeartbeatReply(
        self._phase,
        self._steps,
        self._node_registry.is_acting_delayed(),
        bool(self._stopped_early),
      )

  def finish(self, node: str) -> None:
    """Marks a node as done, and advances the phase."""
    with self._lock:
      self._node_registry.finish(node)
      self._step_budget.drop(node)
      self._advance_phase()

  def fail(self, failure: failures.Failure) -> None:
    """Ends the run because a node failed; the first failure is reported.

    The failure of a node that can be restarted is only stored, until
    `decide_restart`.
    """
    with self._lock:
      if not (self._is_running() and self._node_registry.keep_cause(failure)):
        self._end(failure)

  def abort(self, failure: failures.Failure) -> None:
    """Ends the run because of a failure, without a restart of nodes."""
    with self._lock:
      self._end(failure)

  def decide_restart(self, failure: failures.Failure) -> bool:
    """Decides whether to restart a node that has ended too early.

    A failure that the node has reported takes precedence. If it is not
    restarted, and was not done, the run ends. In a run that has failed, a
    service that was killed takes the blame, since its clients may have noticed
    first.
    """
    with self._lock:
      node = failure.node
      if kinds.kind_of(node).serves and failure.is_lost:
        self._blame(failure)
      failure = self._node_registry.take_cause(failure)
      if node in self._node_registry.finished() or not self._is_running():
        return False
      if not self._node_registry.may_restart(node):
        self._end(failure)
        return False
      self._fencing.replace(node, self._node_registry.mark_restarted(node))
      self._step_budget.drop(node)
      self._gauges.forget(node)
      self._message = f'{node} was started again: {failure.summary}'
      self._logs.note(node, {'restarted_after': failure.cause})
      return True

  def stop(self, reason: str) -> None:
    """Ends the run at once; nodes write their checkpoints."""
    with self._lock:
      if self._is_running():
        self._phase = reports.STOPPING
        self._message = reason

  def stop_early(self, reason: str) -> None:
    """Ends acting early, as if all steps had been taken.

    The learner still consumes the remaining experience; the last checkpoint and
    evaluation follow.
    """
    with self._lock:
      if self._is_acting():
        self._stopped_early = reason
        self._message = f'stopped early: {reason}'

  def wait_for_decision(self, stop: signals.StopSignal) -> None:
    """Blocks until the stop criterion has answered on the last evaluation."""
    self._callbacks.wait_for_decision(stop)

  def end_callbacks(self) -> str:
    """Ends callbacks and loggers; returns those that still run, at last ''."""
    with self._lock:
      self._logs.flush()
      outcome = callbacks.DONE, ''
      if self._failure is not None:
        outcome = callbacks.FAILED, self._failure.summary
      elif self._phase == reports.STOPPING:
        outcome = callbacks.INTERRUPTED, self._message
      elif self._stopped_early:
        outcome = callbacks.STOPPED_EARLY, self._stopped_early
    return self._callbacks.end(*outcome)

  def failure(self) -> failures.Failure | None:
    """Returns the failure of the run; None without one."""
    return self._failure

  def have_actors_finished(self) -> bool:
    """Returns whether all actors are done."""
    with self._lock:
      return self._node_registry.have_finished(reports.ACTING)

  def observe(self) -> reports.Observation:
    """Returns the observation for the launcher's supervision."""
    status, experiment = self.status(), self._session.experiment
    with self._lock:
      nodes, idle_seconds = self._node_registry, 0.0
      if not nodes.have_all_started():
        self._progressed_at = self._clock()  # A start is no stall.
      if self._phase == reports.ACTING:
        idle_seconds = self._clock() - self._progressed_at
      return reports.Observation(
        status,
        self._phase,
        nodes.finished(),
        # Before the waits of other nodes time out.
        nodes.find_overdue(
          experiment.timeout_seconds / 2, experiment.stall_seconds
        ),
        idle_seconds,
        nodes.find_slowest(),
      )

  def describe_nodes(self) -> Mapping[str, str]:
    """Describes the state of each node, for a stall report."""
    with self._lock:
      return self._node_registry.describe()

  def save(self) -> dict[str, Any]:
    """Returns the run state of a checkpoint."""
    with self._lock:
      return {
        'experiment': self._session.identity,
        'initial_from': self._session.initial,
        'counts': {
          'steps': self._steps,
          'learner_steps': self._learner_steps,
          'runs': self._session.counts['runs'] + 1,
          'episodes': self._gauges.num_episodes,
        },
        'elapsed_seconds': self._position()['elapsed_seconds'],
      }

  def status(self) -> loggers.Status:
    """Returns the status for the display."""
    with self._lock:
      position = self._position()
      return loggers.Status(
        title=self._session.title,
        max_steps=self._session.experiment.max_steps,
        **position,
        **self._gauges.figures(
          self._steps, self._learner_steps, self._is_acting()
        ),
        **self._evaluations.figures(),
        **self._node_registry.figures(position['elapsed_seconds']),
        message=self._message,
        stopped_early=self._stopped_early,
      )

  def close(self) -> None:
    """Ends callbacks, and writes the last rows of the logs."""
    self._callbacks.close()
    with self._lock:
      self._logs.flush()

  def _is_running(self) -> bool:
    return self._phase not in (reports.STOPPING, reports.DONE)

  def _is_acting(self) -> bool:
    """Returns whether there are steps to take."""
    return self._phase == reports.ACTING and not self._stopped_early

  def _position(self) -> dict[str, Any]:
    """Step counts and elapsed time, as columns of the logs."""
    return {
      'steps': self._steps,
      'learner_steps': self._learner_steps,
      'elapsed_seconds': self._clock() - self._began_at,
    }

  def _advance_phase(self) -> None:
    """Advances past all phases whose nodes are done."""
    for phase, following in itertools.pairwise(reports.PHASES):
      if self._phase == phase and self._node_registry.have_finished(phase):
        self._phase = following

  def _end(self, failure: failures.Failure) -> None:
    """Stops the run; only the first failure is reported."""
    self._node_registry.finish(failure.node, 'failed')
    if self._is_running():
      self._phase = reports.STOPPING
    if self._failure is None:
      self._failure = failure
      self._message = f'{failure.node} failed'

  def _blame(self, lost: failures.Failure) -> None:
    """Replaces the failure of another node, which may be a consequence."""
    first = self._failure
    if first is None or first.is_bad_input or first.node == lost.node:
      return
    if not (first.is_lost and kinds.kind_of(first.node).serves):
      details = f"\nThen '{first.node}' failed:\n{first.message}"
      self._failure = dataclasses.replace(lost, details=details)

  def _warn_of_logs(self, message: str) -> None:
    """Warns on the console, since the logs cannot be written."""
    logging.warning('%s', message)
    self._message = ' '.join(filter(None, [self._session.message, message]))


class StepBudget:
  """Step budget: grants environment steps to actors, takes back unused ones.

  A step is first granted, then reported. Granted plus reported steps exceed
  `max_steps` by less than one environment batch.
  """

  def __init__(self, max_steps: int, num_actors: int):
    self._max_steps = max_steps
    self._num_actors = num_actors
    self._granted: dict[str, int] = {}

  def acquire(self, node: str, wanted: int, steps_done: int) -> int:
    """Grants at least `wanted` steps, or 0 when none are left."""
    left = self._max_steps - steps_done - sum(self._granted.values())
    if left <= 0:
      return 0
    # Smaller grants towards the end, so that all actors end together.
    share = left // (4 * self._num_actors)
    granted = max(wanted, min(share, _MAX_GRANT))
    self.use(node, -granted)
    return granted

  def use(self, node: str, steps: int) -> None:
    """Ends grants of steps that were reported, or given back."""
    self._granted[node] = self._granted.get(node, 0) - steps

  def drop(self, node: str) -> None:
    """Takes back all grants of an actor that has ended."""
    self._granted.pop(node, None)
