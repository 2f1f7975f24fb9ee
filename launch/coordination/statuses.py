"""Display figures of speed, episodes, tables, inference and learners."""

import collections
import math
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np

from repertory.components import loggers, replay
from repertory.launch.coordination import reports
from repertory.launch.experiments import session as session_lib

# Number of episodes in the mean return.
_NUM_RETURNS = 100

# Averaging window, and least time of learning before an estimate.
_RATE_SECONDS = 10.0


class Gauges:
  """The newest figures of a run for its display.

  Attributes:
    num_episodes: Training episodes so far.
    tables: Status of each table, by name; set at each learner report.
  """

  def __init__(self, session: session_lib.Session, clock: Callable[[], float]):
    self.num_episodes = session.counts['episodes']
    self.tables: Mapping[str, replay.TableInfo] = {}
    self._session = session
    self._clock = clock
    self._rates = Rates(clock)
    self._learns_since = math.inf
    self._returns: collections.deque[float] = collections.deque(
      maxlen=_NUM_RETURNS
    )
    # The latest row of each label and node.
    self._rows: dict[str, dict[str, Mapping[str, Any]]] = {}
    self._num_unrecorded: collections.Counter[str] = collections.Counter()
    self._unrecorded_reason = ''

  def take_episodes(
    self, episodes: Sequence[tuple[float, ...]], position: Mapping[str, float]
  ) -> dict[str, np.ndarray]:
    """Records return, length and `info` values of K > 0 finished episodes.

    Returns log columns `[K]` by name.
    """
    returns, lengths, *info = (np.asarray(column) for column in zip(*episodes))
    size, before = len(returns), self.num_episodes
    self._returns.extend(returns[-_NUM_RETURNS:].tolist())
    self.num_episodes += size
    return {
      'episode_return': returns,
      'episode_length': lengths,
      **dict(zip(self._session.experiment.info, info, strict=True)),
      **{name: np.full([size], value) for name, value in position.items()},
      'episodes': np.arange(before + 1, before + size + 1),
    }

  def take_actor(self, node: str, report: reports.ActorReport) -> None:
    """Stores an actor's variable version and its unrecorded steps."""
    version = {'version': report.version, 'age_seconds': report.age_seconds}
    self.take_row('actors', {'node': node, **version})
    if report.num_unrecorded:
      self._num_unrecorded[node] += report.num_unrecorded
      self._unrecorded_reason = report.unrecorded_reason

  def take_row(self, label: str, row: Mapping[str, Any]) -> None:
    """Stores the figures of a log row."""
    self._rows.setdefault(label, {})[row.get('node', '')] = row

  def forget(self, node: str) -> None:
    """Drops the figures of a node that has ended."""
    for rows in self._rows.values():
      rows.pop(node, None)

  def figures(
    self, steps: int, learner_steps: int, is_acting: bool
  ) -> dict[str, Any]:
    """Returns these figures, by the names of `loggers.Status`."""
    rows: dict[str, tuple[Mapping[str, Any], ...]] = collections.defaultdict(
      tuple
    )
    for label, by_node in self._rows.items():
      rows[label] = tuple(row for _, row in sorted(by_node.items()))
    versions = [
      row
      for row in rows['actors'] + rows[reports.INFERENCE]
      if row['version'] >= 0  # Not the learner's own.
    ]
    # The learner reports later than actors fetch.
    lags = [max(0, learner_steps - row['version']) for row in versions]
    updaters, learners = rows[reports.TARGETS], rows[reports.GOSSIP]
    table = self._session.tables[0]
    limit, info = table.rate_limit, self.tables.get(table.name)
    return {
      'episodes': self.num_episodes,
      'mean_return': mean(self._returns),
      'num_returns': len(self._returns),
      **self._measure_speed(steps, learner_steps, is_acting),
      'samples_per_insert': info and limit and achieved_ratio(info, limit),
      'target_samples_per_insert': limit and limit.samples_per_insert,
      'tables': tuple(
        loggers.TableStatus(
          name, table.size, table.max_size, table.waiting, table.inserts
        )
        for name, table in self.tables.items()
      ),
      'variables_age_steps': mean(lags),
      'variables_age_seconds': mean([row['age_seconds'] for row in versions]),
      'inference': rows[reports.INFERENCE],
      'targets_per_second': (
        sum(row['targets_per_second'] for row in updaters) if updaters else None
      ),
      'target_age_steps': mean(
        [row['target_age'] for row in rows['learner'] if 'target_age' in row]
      ),
      'learners': learners,
      'learners_distance': (
        math.hypot(*(row['distance'] for row in learners)) if learners else None
      ),
      'not_recorded': self._describe_unrecorded(),
    }

  def _measure_speed(
    self, steps: int, learner_steps: int, is_acting: bool
  ) -> dict[str, float | None]:
    """Returns steps per second, and an estimate of the time left.

    Not while the run stands still, nor in the first seconds of learning, whose
    rate is that of acting alone or of compilation.
    """
    rate, learner_rate = self._rates.measure(steps, learner_steps)
    now, left = self._clock(), self._session.experiment.max_steps - steps
    if learner_steps > self._session.counts['learner_steps']:
      self._learns_since = min(self._learns_since, now)
    is_steady = now - self._learns_since >= _RATE_SECONDS
    is_known = is_acting and is_steady and rate > 0 and left > 0
    return {
      'steps_per_second': rate,
      'learner_steps_per_second': learner_rate,
      'seconds_left': left / rate if is_known else None,
    }

  def _describe_unrecorded(self) -> str:
    counts = self._num_unrecorded
    if not counts:
      return ''
    parts = ', '.join(f'{count:,} of {node}' for node, count in counts.items())
    return (
      f'The recording lacks {sum(counts.values()):,} steps that could not be '
      f'written: {parts} ({self._unrecorded_reason}).'
    )


def achieved_ratio(
  table: replay.TableInfo, limit: replay.RateLimit
) -> float | None:
  """Returns samples / (inserts − min_size); None before the first sample."""
  beyond = table.inserts - limit.min_size
  return table.samples / beyond if beyond > 0 and table.samples else None


def mean(values: Collection[float]) -> float | None:
  """Returns the mean; None without values."""
  return sum(values) / len(values) if values else None


class Rates:
  """Moving averages of several rates per second."""

  def __init__(self, clock: Callable[[], float] = time.monotonic):
    self._clock = clock
    self._history: collections.deque = collections.deque()

  def measure(self, *counts: int) -> list[float]:
    """Returns the rate per second of each count."""
    now = self._clock()
    self._history.append((now, counts))
    while now - self._history[0][0] > _RATE_SECONDS and len(self._history) > 2:
      self._history.popleft()
    then, before = self._history[0]
    seconds = now - then
    return [
      (count - old) / seconds if seconds else 0.0
      for count, old in zip(counts, before)
    ]
