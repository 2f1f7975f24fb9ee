"""Counts, logs, and tells everybody what is to be done.

In one process it is called directly, else over Courier; so its public methods
take and return plain values and records of them.
"""

import collections
import os
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

from repertory.components import loggers, replay
from repertory.launch import failures, logs, reports
from repertory.launch import session as session_lib

# Over how many episodes and how much time figures are averaged.
_NUM_RETURNS = 100
_RATE_SECONDS = 10.0

# Of the replay log: what a table is like at a moment, and when that is.
_REPLAY_COLUMNS = (
  'steps',
  'learner_steps',
  'elapsed_seconds',
  'size',
  'inserts',
  'samples',
  'samples_per_insert',
  'target_samples_per_insert',
)

# Environment steps an actor is granted at once, at most.
_MAX_GRANT = 1000


class Coordinator:
  """The one place that knows how far a run is."""

  def __init__(self, session: session_lib.Session, title: str):
    """Goes on counting where the resumed run ended.

    Args:
      session: What runs.
      title: What the display calls it.
    """
    experiment = session.experiment
    self._session = session
    self._title = title
    self._num_actors = experiment.num_actors
    self._max_steps = experiment.max_steps
    self._counts = dict(session.counts)
    self._granted = self._counts['steps']
    self._lock = threading.Lock()
    self._phase = reports.ACTING
    self._failure: failures.Failure | None = None
    self._message = 'resumed from a checkpoint' if session.is_resumed else ''
    self._finished: set[str] = set()
    self._states: dict[str, str] = {}
    self._start = time.monotonic()
    self._returns = collections.deque(maxlen=_NUM_RETURNS)
    self._rates = collections.deque()
    self._versions: dict[str, tuple[int, float]] = {}
    self._tables: Mapping[str, replay.TableStatus] = {}
    self._limits = {t.name: t.rate_limit for t in session.tables}
    self._evaluation: tuple[int, float] | None = None
    directory = session.log_directory
    self._episode_logger = logs.aggregate(
      logs.make_logger(directory, 'actors'),
      latest=('steps', 'episodes', 'learner_steps', 'elapsed_seconds'),
    )
    self._directory = directory
    self._inference: dict[str, Mapping[str, float]] = {}
    self._loggers = {
      'learner': logs.make_logger(directory, 'learner'),
      'replay': logs.aggregate(
        logs.make_logger(directory, 'replay'), latest=_REPLAY_COLUMNS
      ),
      'evaluator': logs.make_logger(directory, 'evaluator'),
    }
    self._node_logger = loggers.JsonlFile(
      os.path.join(directory, 'nodes.jsonl')
    )

  def register(self, node: str, description: Mapping[str, Any]) -> None:
    """Notes that a node runs, and with what; see `logs/nodes.jsonl`."""
    with self._lock:
      self._states[node] = 'running'
      row = {'node': node, 'run': self._counts['runs'], **description}
      self._node_logger.write(row)

  def acquire_steps(self, wanted: int) -> int:
    """Grants environment steps to an actor.

    Args:
      wanted: The least that is of use: a step of its environment batch.

    Returns:
      How many it may take before it asks again: at least `wanted`, or 0 when
      the run has no more.
    """
    with self._lock:
      left = self._max_steps - self._granted
      if left <= 0 or self._phase != reports.ACTING:
        return 0
      # Smaller grants towards the end, so that all actors end together.
      share = left // (4 * self._num_actors)
      granted = max(wanted, min(share, _MAX_GRANT))
      self._granted += granted
      return granted

  def return_steps(self, unused: int) -> None:
    """Takes back granted steps that were not taken."""
    with self._lock:
      self._granted -= unused

  def report_actor(
    self, node: str, report: reports.ActorReport
  ) -> reports.Directive:
    """Takes what an actor did since it reported last."""
    with self._lock:
      self._counts['steps'] += report.steps
      for episode_return, length in report.episodes:
        self._counts['episodes'] += 1
        self._returns.append(episode_return)
        self._episode_logger.write(
          {
            'episode_return': episode_return,
            'episode_length': length,
            **self._position(),
            'episodes': self._counts['episodes'],
          }
        )
      if report.version >= 0:
        self._versions[node] = (report.version, report.age_seconds)
      return self._directive()

  def report_inference(
    self, node: str, version: int, age_seconds: float, row: Mapping[str, float]
  ) -> reports.Directive:
    """Takes what an inference node did since it reported last."""
    with self._lock:
      self._versions[node] = (version, age_seconds)
      self._inference[node] = row
      if 'inference' not in self._loggers:
        self._loggers['inference'] = logs.make_logger(
          self._directory, 'inference'
        )
      self._loggers['inference'].write(
        {**self._position(), 'node': node, 'version': version, **row}
      )
      return self._directive()

  def report_learner(
    self, learner_steps: int, tables: Mapping[str, replay.TableStatus]
  ) -> reports.Directive:
    """Takes the learner's total of updates, and the state of its tables."""
    with self._lock:
      self._counts['learner_steps'] = learner_steps
      self._tables = tables
      return self._directive()

  def write(self, label: str, row: Mapping[str, Any]) -> None:
    """Logs a row of 'learner', 'replay' or 'evaluator'."""
    with self._lock:
      self._loggers[label].write({**self._position(), **row})

  def report_evaluation(self, returns: Sequence[float], lengths) -> None:
    """Logs an evaluation: returns and lengths of its episodes."""
    mean = sum(returns) / len(returns)
    variance = sum((r - mean) ** 2 for r in returns) / len(returns)
    self.write(
      'evaluator',
      {
        'episode_return': mean,
        'episode_return_deviation': variance**0.5,
        'episode_return_min': min(returns),
        'episode_return_max': max(returns),
        'episode_length': sum(lengths) / len(lengths),
        'count': len(returns),
      },
    )
    with self._lock:
      self._evaluation = (self._counts['steps'], mean)

  def poll(self) -> reports.Directive:
    """Returns what is to be done, to a node with nothing to report."""
    with self._lock:
      return self._directive()

  def finish(self, node: str) -> None:
    """Notes that a node has done its part."""
    with self._lock:
      self._finished.add(node)
      self._states[node] = 'done'
      actors = [name for name in self._finished if name.startswith('actor/')]
      if self._phase == reports.ACTING and len(actors) == self._num_actors:
        self._phase = reports.LEARNING
      if self._phase == reports.LEARNING and 'learner' in self._finished:
        self._phase = reports.EVALUATING
      if self._phase == reports.EVALUATING and 'evaluator' in self._finished:
        self._phase = reports.DONE

  def fail(self, failure: failures.Failure) -> None:
    """Ends the run because a node failed; the first failure is told."""
    with self._lock:
      self._states[failure.node] = 'failed'
      self._finished.add(failure.node)
      if self._failure is None:
        self._failure = failure
        self._message = f'{failure.node} failed'
      self._phase = reports.STOPPING

  def stop(self, reason: str) -> None:
    """Ends the run early; nodes save what is to be saved."""
    with self._lock:
      if self._phase != reports.DONE:
        self._phase = reports.STOPPING
        self._message = reason

  def failure(self) -> failures.Failure | None:
    """Returns why the run failed, if it did."""
    return self._failure

  def finished(self) -> Sequence[str]:
    """Returns the names of the nodes that have done their part."""
    with self._lock:
      return sorted(self._finished)

  def phase(self) -> str:
    """Returns the phase of the run."""
    return self._phase

  def save(self) -> dict[str, Any]:
    """Returns what a checkpoint holds of the run as a whole."""
    with self._lock:
      counts = {**self._counts, 'runs': self._counts['runs'] + 1}
      return {
        'experiment': self._session.identity(),
        'counts': counts,
        'elapsed_seconds': self._elapsed(),
      }

  def status(self) -> loggers.Status:
    """Returns what the display shows."""
    with self._lock:
      steps_rate, learner_rate = self._measure_rates()
      learner_steps = self._counts['learner_steps']
      # The learner reports later than actors fetch.
      lags = [max(0, learner_steps - v) for v, _ in self._versions.values()]
      ages = [age for _, age in self._versions.values()]
      left = self._max_steps - self._counts['steps']
      achieved, target = self._samples_per_insert()
      return loggers.Status(
        title=self._title,
        steps=self._counts['steps'],
        max_steps=self._max_steps,
        episodes=self._counts['episodes'],
        mean_return=_mean(self._returns),
        num_returns=len(self._returns),
        steps_per_second=steps_rate,
        learner_steps=learner_steps,
        learner_steps_per_second=learner_rate,
        samples_per_insert=achieved,
        target_samples_per_insert=target,
        tables=tuple(
          loggers.TableStatus(name, table.size, table.max_size, table.waiting)
          for name, table in self._tables.items()
        ),
        variables_age_steps=_mean(lags),
        variables_age_seconds=_mean(ages),
        evaluation_return=self._evaluation and self._evaluation[1],
        evaluation_steps=self._evaluation and self._evaluation[0],
        elapsed_seconds=self._elapsed(),
        seconds_left=max(0, left) / steps_rate if steps_rate else None,
        nodes=tuple(sorted(self._states.items())),
        inference=tuple(
          loggers.InferenceStatus(
            name=name,
            rows_per_second=row['rows_per_second'],
            rows_per_batch=row['rows_per_batch'],
            fill=row['fill'],
            wait_ms=row['wait_ms_p50'],
            run_ms=row['run_ms_p50'],
            transport_ms=row['transport_ms_p50'],
            adding_share=row['adding_share'],
          )
          for name, row in sorted(self._inference.items())
        ),
        message=self._message,
      )

  def close(self) -> None:
    """Writes what the logs still hold back."""
    with self._lock:
      for logger in (
        self._episode_logger,
        *self._loggers.values(),
        self._node_logger,
      ):
        logger.close()

  def _directive(self) -> reports.Directive:
    return reports.Directive(
      self._phase, self._counts['steps'], self._counts['learner_steps']
    )

  def _position(self) -> dict[str, float]:
    return {
      'steps': self._counts['steps'],
      'learner_steps': self._counts['learner_steps'],
      'elapsed_seconds': self._elapsed(),
    }

  def _elapsed(self) -> float:
    return self._session.elapsed_seconds + time.monotonic() - self._start

  def _measure_rates(self) -> tuple[float, float]:
    now = time.monotonic()
    self._rates.append(
      (now, self._counts['steps'], self._counts['learner_steps'])
    )
    while now - self._rates[0][0] > _RATE_SECONDS and len(self._rates) > 2:
      self._rates.popleft()
    then, steps, learner_steps = self._rates[0]
    seconds = now - then
    if not seconds:
      return 0.0, 0.0
    return (
      (self._counts['steps'] - steps) / seconds,
      (self._counts['learner_steps'] - learner_steps) / seconds,
    )

  def _samples_per_insert(self) -> tuple[float | None, float | None]:
    """Returns draws per item beyond the minimum, so far and as aimed at."""
    name, limit = next(iter(self._limits.items()))  # The learner samples it.
    table = self._tables.get(name)
    if table is None or limit is None:
      return None, None
    return achieved_ratio(table, limit), limit.samples_per_insert


def achieved_ratio(
  table: replay.TableStatus, limit: replay.RateLimit
) -> float | None:
  """Returns samples / (inserts − min_size); None before the first sample."""
  beyond = table.inserts - limit.min_size
  return table.samples / beyond if beyond > 0 and table.samples else None


def _mean(values) -> float | None:
  return sum(values) / len(values) if values else None
