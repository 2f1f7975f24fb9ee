"""Display figures of episodes, tables, inference, variables and learners."""

import collections
import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from repertory.components import loggers, replay
from repertory.launch.coordination import reports
from repertory.launch.experiments import session as session_lib

# Number of episodes in the mean return.
_NUM_RETURNS = 100

_LABELS = (reports.INFERENCE, reports.TARGETS, reports.GOSSIP)


class Gauges:
  """The newest figures of tables, inference servers and variables.

  Attributes:
    tables: Status of each table, by name; set at each learner report.
  """

  def __init__(self, tables: Sequence[replay.TableSpec]):
    self.tables: Mapping[str, replay.TableInfo] = {}
    self._limits = {table.name: table.rate_limit for table in tables}
    self._versions: dict[str, tuple[int, float]] = {}
    # By label: the latest row of each node.
    self._rows: dict[str, dict[str, Mapping[str, Any]]] = {
      label: {} for label in _LABELS
    }
    self._target_age: float | None = None
    self._num_unrecorded: dict[str, int] = {}
    self._unrecorded_reason = ''

  def take_actor(self, node: str, report: reports.ActorReport) -> None:
    """Stores an actor's variable version and its unrecorded steps."""
    self._take_version(node, report.version, report.age_seconds)
    if report.num_unrecorded:
      counts = self._num_unrecorded
      counts[node] = counts.get(node, 0) + report.num_unrecorded
      self._unrecorded_reason = report.unrecorded_reason

  def take_row(self, label: str, row: Mapping[str, Any]) -> None:
    """Stores the figures of a log row."""
    if label in _LABELS:
      self._rows[label][row['node']] = row
    if label == reports.INFERENCE:
      self._take_version(row['node'], row['version'], row['age_seconds'])
    self._target_age = row.get('target_age', self._target_age)

  def forget(self, node: str) -> None:
    """Drops the figures of a node that has ended."""
    for rows in self._rows.values():
      rows.pop(node, None)
    self._versions.pop(node, None)

  def figures(self, learner_steps: int) -> dict[str, Any]:
    """Returns these figures, by the names of `loggers.Status`."""
    achieved, target = self._samples_per_insert()
    # The learner reports later than actors fetch.
    lags = [max(0, learner_steps - v) for v, _ in self._versions.values()]
    updaters = self._rows[reports.TARGETS].values()
    return {
      'samples_per_insert': achieved,
      'target_samples_per_insert': target,
      'tables': tuple(
        loggers.TableStatus(
          name, table.size, table.max_size, table.waiting, table.inserts
        )
        for name, table in self.tables.items()
      ),
      'variables_age_steps': mean(lags),
      'variables_age_seconds': mean([a for _, a in self._versions.values()]),
      'inference': tuple(
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
        for name, row in sorted(self._rows[reports.INFERENCE].items())
      ),
      'targets_per_second': (
        sum(row['targets_per_second'] for row in updaters) if updaters else None
      ),
      'target_age_steps': self._target_age,
      **self._gossip_figures(),
      'not_recorded': self._describe_unrecorded(),
    }

  def _take_version(self, node: str, version: int, age_seconds: float) -> None:
    if version >= 0:  # Not the learner's own.
      self._versions[node] = (version, age_seconds)

  def _samples_per_insert(self) -> tuple[float | None, float | None]:
    """Returns achieved and target samples per insert of the first table."""
    name, limit = next(iter(self._limits.items()))
    table = self.tables.get(name)
    if table is None or limit is None:
      return None, None
    return achieved_ratio(table, limit), limit.samples_per_insert

  def _gossip_figures(self) -> dict[str, Any]:
    learners = self._rows[reports.GOSSIP]
    if not learners:
      return {}
    return {
      'learners': tuple(
        loggers.LearnerStatus(
          name=name,
          learner_steps=row['version'],
          mean_return=row['episode_return'],
          messages_per_second=row['messages_per_second'],
          age_seconds=row['age_seconds'],
        )
        for name, row in sorted(learners.items())
      ),
      'learners_distance': math.hypot(
        *(row['distance'] for row in learners.values())
      ),
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


class EpisodeStatistics:
  """Counts training episodes, and averages the latest returns."""

  def __init__(self, session: session_lib.Session):
    self.count = session.counts['episodes']
    self._info_names = session.experiment.info
    self._returns: collections.deque[float] = collections.deque(
      maxlen=_NUM_RETURNS
    )

  def take(
    self,
    episodes: Sequence[tuple[float, ...]],
    position: Mapping[str, float],
  ) -> dict[str, np.ndarray]:
    """Records return, length and `info` values of K > 0 finished episodes.

    Returns log columns `[K]` by name.
    """
    returns, lengths, *info = (np.asarray(column) for column in zip(*episodes))
    size = len(returns)
    self._returns.extend(returns[-_NUM_RETURNS:].tolist())
    self.count += size
    return {
      'episode_return': returns,
      'episode_length': lengths,
      **dict(zip(self._info_names, info, strict=True)),
      **{name: np.full([size], value) for name, value in position.items()},
      'episodes': np.arange(self.count - size + 1, self.count + 1),
    }

  def figures(self) -> dict[str, Any]:
    """Returns the display figures of episodes."""
    returns = self._returns
    return {
      'episodes': self.count,
      'mean_return': mean(returns),
      'num_returns': len(returns),
    }
