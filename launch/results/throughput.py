"""Throughput, waiting times and incidents of a run."""

import collections
import dataclasses
import os
from collections.abc import Mapping, Sequence

import numpy as np

from repertory.components.config import regular_files
from repertory.launch.opening import directories, run_metadata
from repertory.launch.results import runs as runs_lib

_LATELY = 0.25  # Share of rows that counts as recent.

# Topologies of one thread, in which the rate limiter never blocks.
_TAKE_TURNS = ('single', 'anakin')

INFERENCE = {
  'rows_per_batch': 'rows of a batch',
  'fill': 'of the computed rows asked for',
  'wait_ms_p50': 'ms a request waits',
  'run_ms_p50': 'ms the network runs',
  'round_trip_ms_p50': 'ms a round trip takes',
  'adding_share': 'of the time in adders',
}


@dataclasses.dataclass(frozen=True)
class Throughput:
  """Throughput of a run; None for what its logs lack.

  Attributes:
    steps_per_second: Environment steps per second, over the whole run.
    lately: Environment steps per second, over the last quarter of its rows.
    updates_per_second: Learner steps per second, over the whole run.
    inserts_wait: Share of time in which the rate limiter blocked inserts.
    samples_wait: Share of time in which it blocked samples.
    inference: Means over servers and time, by description.
    bottleneck: The bottleneck, judging by the rate limiter; '' if unknown.
  """

  steps_per_second: float | None
  lately: float | None
  updates_per_second: float | None
  inserts_wait: float | None
  samples_wait: float | None
  inference: Mapping[str, float]
  bottleneck: str


def measure(run: runs_lib.RunRecord) -> Throughput:
  """Computes the throughput of a run from its logs."""
  seconds = run.elapsed_seconds or 0.0
  inserts_wait = samples_wait = None
  bottleneck = 'acting and learning take turns'
  if run.topology not in _TAKE_TURNS:
    inserts_wait = _mean(run, 'replay', 'inserts_wait')
    samples_wait = _mean(run, 'replay', 'samples_wait')
    bottleneck = _name_bottleneck(inserts_wait, samples_wait)
  return Throughput(
    steps_per_second=run.steps / seconds if seconds and run.steps else None,
    lately=_measure_lately(run),
    updates_per_second=(
      run.learner_steps / seconds if seconds and run.learner_steps else None
    ),
    inserts_wait=inserts_wait,
    samples_wait=samples_wait,
    inference={
      title: value
      for name, title in INFERENCE.items()
      if (value := _mean(run, 'inference', name)) is not None
    },
    bottleneck=bottleneck,
  )


def _name_bottleneck(
  inserts_wait: float | None, samples_wait: float | None
) -> str:
  if inserts_wait is None or samples_wait is None:
    return ''
  if max(inserts_wait, samples_wait) < 0.5:
    return 'neither side waits for the other most of the time'
  if samples_wait >= inserts_wait:
    return 'learning waits for acting: more or faster actors would help'
  return 'acting waits for learning: a faster learner would help'


@dataclasses.dataclass(frozen=True)
class Incident:
  """A restart, warning, stall or failure of a run.

  Attributes:
    kind: One or two words.
    text: Description on one line.
    count: Number of occurrences.
  """

  kind: str
  text: str
  count: int = 1


def incidents(run: runs_lib.RunRecord) -> list[Incident]:
  """Returns the incidents of a run, in the order of the logs."""
  counted: collections.Counter[tuple[str, str]] = collections.Counter()
  for start in run.starts[1:]:
    if run_metadata.BEGUN in start:
      counted['resumed', str(start.get('message') or 'started again')] += 1
  for row in run.logs.rows('nodes'):
    node = row.get('node')
    if row.get('restarted_after'):
      cause = _last_line(row['restarted_after'])
      counted['restarted', f'{node}, after: {cause}'] += 1
    if row.get('warning'):
      counted['warning', f'{node}: {_last_line(row["warning"])}'] += 1
  skipped = run.logs.column('learner', 'skipped_updates')
  if len(skipped) and np.nanmax(skipped) > 0:
    text = f'{np.nanmax(skipped):,.0f} non-finite updates'
    counted['skipped', text] += 1
  for name in _list(run, directories.DIVERGED):
    counted['diverged', f'the batch is in {directories.DIVERGED}/{name}'] += 1
  if stall := _read_stall(run):
    counted['stalled', stall] += 1
  if run.state == runs_lib.FAILED or (
    run.state == runs_lib.INTERRUPTED and run.why
  ):
    counted[run.state, _last_line(run.why)] += 1
  for problem in run.problems:
    counted['unreadable', problem] += 1
  return [Incident(*key, count) for key, count in counted.items()]


def _measure_lately(run: runs_lib.RunRecord) -> float | None:
  steps = run.logs.column('actors', 'steps')
  seconds = run.logs.column('actors', 'elapsed_seconds')
  if len(steps) < 2:
    return None
  first = min(int(len(steps) * (1 - _LATELY)), len(steps) - 2)
  taken = seconds[-1] - seconds[first]
  return float((steps[-1] - steps[first]) / taken) if taken > 0 else None


def _mean(run: runs_lib.RunRecord, label: str, name: str) -> float | None:
  """Returns the mean of a column, weighted by the counts of rows."""
  values = run.logs.column(label, name)
  counts = run.logs.column(label, 'count')
  if len(counts) != len(values):
    counts = np.ones(len(values))
  known = np.isfinite(values) & (counts > 0)
  if not np.any(known):
    return None
  return float(np.average(values[known], weights=counts[known]))


def _read_stall(run: runs_lib.RunRecord) -> str:
  """Returns the first line of a stall's report; '' without one."""
  name = os.path.join(directories.LOGS, 'stall.txt')
  try:
    with regular_files.open_inside(run.directory, name) as file:
      return file.readline().decode(errors='replace').strip()
  except OSError:
    return ''


def _list(run: runs_lib.RunRecord, folder: str) -> Sequence[str]:
  try:
    return regular_files.list_inside(run.directory, folder)
  except OSError:
    return []


def _last_line(text: object) -> str:
  lines = str(text).strip().splitlines()
  return lines[-1] if lines else ''
