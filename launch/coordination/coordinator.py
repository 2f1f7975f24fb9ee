"""Counts, logs, and tells everybody what is to be done.

In one process it is called directly, else over Courier; so its public methods
take and return plain values and records of them.
"""

import itertools
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from absl import logging

from repertory.components import callers, loggers, replay
from repertory.launch import failures
from repertory.launch.coordination import (
  episodes,
  evaluations,
  kinds,
  leases,
  logs,
  rates,
  reports,
  roster,
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
    self._max_steps = experiment.max_steps
    self._counts = dict(session.counts)
    self._leases = leases.StepLeases(self._max_steps, experiment.num_actors)
    self._roster = roster.Roster(max_restarts, clock)
    self._admission = admission or callers.Admission()
    self._lock = threading.RLock()
    self._phase = reports.ACTING
    self._failure: failures.Failure | None = None
    # Of nodes that are started again, before their processes have ended.
    self._causes: dict[str, failures.Failure] = {}
    self._message = session.message
    self._clock = clock
    self._start = self._progressed_at = clock()
    self._episodes = episodes.Episodes(self._counts.pop('episodes'))
    self._rates = rates.Rates(clock)
    self._versions: dict[str, tuple[int, float]] = {}
    self._tables: Mapping[str, replay.TableStatus] = {}
    self._limits = {t.name: t.rate_limit for t in session.tables}
    self._evaluations = evaluations.Evaluations(session)
    self._inference: dict[str, Mapping[str, float]] = {}
    self._logs = logs.RunLogs(session.log_directory, self._warn_of_logs)
    if self._evaluations.warning:
      self.warn(kinds.COORDINATOR.name, self._evaluations.warning)
    if (failure := session.restarted_after) is not None:
      self._note(failure.node, {'restarted_after': failure.cause})

  def expect(self, nodes: Sequence[str]) -> None:
    """Notes which nodes are being started."""
    with self._lock:
      self._roster.expect(nodes)
      self._go_through_phases()

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
      self._note(node, description)

  def address_of(self, node: str) -> str | None:
    """Returns where a node listens; None if it does not, or not yet."""
    with self._lock:
      return self._roster.address_of(node)

  def warn(self, node: str, message: str) -> None:
    """Notes what the user should know although the run goes on."""
    with self._lock:
      self._message = message
      self._note(node, {'warning': message})

  def acquire_steps(self, node: str, wanted: int) -> int:
    """Grants environment steps to an actor; see `StepLeases.acquire`."""
    with self._lock:
      if self._phase != reports.ACTING:
        return 0
      return self._leases.acquire(node, wanted, self._counts['steps'])

  def return_steps(self, node: str, unused: int) -> None:
    """Takes back granted steps that were not taken."""
    with self._lock:
      self._leases.give_back(node, unused)

  def report_actor(
    self, node: str, report: reports.ActorReport
  ) -> reports.Directive:
    """Takes what an actor did since it reported last."""
    with self._lock:
      self._counts['steps'] += report.steps
      self._leases.use(node, report.steps)
      self._roster.hear(node, report.total_steps, report.environment_seconds)
      if report.steps:
        self._progressed_at = self._clock()
      if report.episodes:
        columns = self._episodes.take(report.episodes, self._position())
        self._logs.write_rows('actors', columns)
      if report.version >= 0:
        self._versions[node] = (report.version, report.age_seconds)
      return self.directive()

  def report_inference(
    self, node: str, version: int, age_seconds: float, row: Mapping[str, float]
  ) -> reports.Directive:
    """Takes what an inference node did since it reported last."""
    with self._lock:
      self._roster.hear(node)
      self._versions[node] = (version, age_seconds)
      self._inference[node] = row
      self._logs.write(
        'inference',
        {**self._position(), 'node': node, 'version': version, **row},
      )
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
      if learner_steps != self._counts['learner_steps']:
        self._progressed_at = self._clock()
      self._counts['learner_steps'] = learner_steps
      self._tables = tables
      return self.directive()

  def write(self, label: str, row: Mapping[str, Any]) -> None:
    """Logs a row of 'learner', 'replay' or 'evaluator'."""
    with self._lock:
      self._logs.write(label, {**self._position(), **row})

  def report_evaluation(
    self, returns: Sequence[float], lengths: Sequence[int]
  ) -> bool:
    """Logs an evaluation: returns and lengths of its episodes.

    Returns:
      Whether it is the best so far: then `keep_best` is to be called.
    """
    with self._lock:
      row, is_best = self._evaluations.take(
        returns, lengths, self._counts['steps']
      )
      self._logs.write('evaluator', {**self._position(), **row})
      self._progressed_at = self._clock()
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
        self._phase,
        self._counts['steps'],
        self._counts['learner_steps'],
        self._roster.is_acting_delayed(),
      )

  def finish(self, node: str) -> None:
    """Notes that a node has done its part."""
    with self._lock:
      self._roster.finish(node)
      self._leases.drop(node)
      self._go_through_phases()

  def fail(self, failure: failures.Failure) -> None:
    """Ends the run because a node failed; the first failure is told.

    But one that can be started again is only noted, until `lose`.
    """
    with self._lock:
      can_go_on = self._is_going_on() and not failure.is_bad_input
      if can_go_on and self._roster.may_restart(failure.node):
        self._causes[failure.node] = failure
      else:
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
      failure = self._causes.pop(node, failure)
      if self._roster.has_finished(node) or not self._is_going_on():
        return False
      if not self._roster.may_restart(node):
        self._end(failure)
        return False
      self._admission.replace(node, self._roster.restart(node))
      self._leases.drop(node)
      self._inference.pop(node, None)
      self._versions.pop(node, None)
      self._message = f'{node} was started again: {failure.summary}'
      self._note(node, {'restarted_after': failure.cause})
      return True

  def stop(self, reason: str) -> None:
    """Ends the run early; nodes save what is to be saved."""
    with self._lock:
      if self._phase != reports.DONE:
        self._phase = reports.STOPPING
        self._message = reason

  def failure(self) -> failures.Failure | None:
    """Returns why the run failed, if it did."""
    return self._failure

  def have_actors_finished(self) -> bool:
    """Returns whether all actors have done their part."""
    with self._lock:
      return self._roster.have_finished(reports.ACTING)

  def observe(self) -> reports.Observation:
    """Returns what the launcher goes by."""
    status = self.status()
    experiment = self._session.experiment
    with self._lock:
      if not self._roster.have_all_started():
        self._progressed_at = self._clock()
      idle = self._clock() - self._progressed_at
      return reports.Observation(
        status=status,
        phase=self._phase,
        finished=self._roster.finished(),
        overdue=self._roster.find_overdue(
          # Before those who wait for it give up.
          experiment.timeout_seconds / 2,
          experiment.stall_seconds,
        ),
        idle_seconds=idle if self._phase == reports.ACTING else 0.0,
        laggard=self._roster.find_laggard(),
      )

  def describe_nodes(self) -> Mapping[str, str]:
    """Says of each node how it does, for a report."""
    with self._lock:
      return self._roster.describe()

  def save(self) -> dict[str, Any]:
    """Returns what a checkpoint holds of the run as a whole."""
    with self._lock:
      counts = {
        **self._counts,
        'episodes': self._episodes.count,
        'runs': self._counts['runs'] + 1,
      }
      return {
        'experiment': self._session.identity,
        'initial_from': self._session.initial,
        'counts': counts,
        'elapsed_seconds': self._elapsed(),
      }

  def status(self) -> loggers.Status:
    """Returns what the display shows."""
    with self._lock:
      steps = self._counts['steps']
      learner_steps = self._counts['learner_steps']
      steps_rate, learner_rate = self._rates.measure(steps, learner_steps)
      left = self._max_steps - steps
      achieved, target = statuses.samples_per_insert(self._tables, self._limits)
      return loggers.Status(
        title=self._title,
        steps=steps,
        max_steps=self._max_steps,
        **self._episodes.figures(),
        steps_per_second=steps_rate,
        learner_steps=learner_steps,
        learner_steps_per_second=learner_rate,
        samples_per_insert=achieved,
        target_samples_per_insert=target,
        tables=statuses.list_tables(self._tables),
        **statuses.variables_age(self._versions.values(), learner_steps),
        **self._evaluations.figures(),
        elapsed_seconds=self._elapsed(),
        seconds_left=max(0, left) / steps_rate if steps_rate else None,
        nodes=self._roster.states(),
        hosts=self._roster.hosts(),
        num_restarts=(
          self._session.num_restarts + self._roster.num_restarts or None
        ),
        inference=statuses.list_inference(self._inference),
        message=self._message,
      )

  def close(self) -> None:
    """Writes what the logs still hold back."""
    with self._lock:
      self._logs.close()

  def _is_going_on(self) -> bool:
    return self._phase not in (reports.STOPPING, reports.DONE)

  def _go_through_phases(self) -> None:
    """Ends the phases in which all have done their part."""
    for phase, following in itertools.pairwise(reports.PHASES):
      if self._phase == phase and self._roster.have_finished(phase):
        self._phase = following

  def _end(self, failure: failures.Failure) -> None:
    self._roster.fail(failure.node)
    if self._failure is None:
      self._failure = failure
      self._message = f'{failure.node} failed'
    self._phase = reports.STOPPING

  def _note(self, node: str, row: Mapping[str, Any]) -> None:
    self._logs.write(
      'nodes', {'node': node, 'run': self._counts['runs'], **row}
    )

  def _warn_of_logs(self, message: str) -> None:
    """Tells what the logs may have no room for."""
    logging.warning('%s', message)
    self._message = ' '.join(filter(None, [self._session.message, message]))

  def _position(self) -> dict[str, float]:
    return {
      'steps': self._counts['steps'],
      'learner_steps': self._counts['learner_steps'],
      'elapsed_seconds': self._elapsed(),
    }

  def _elapsed(self) -> float:
    return self._session.elapsed_seconds + self._clock() - self._start
