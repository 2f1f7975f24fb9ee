"""Throughput, waiting times and incidents of a run."""

import collections
import contextlib
import os

import numpy as np

from repertory.components.config import regular_files
from repertory.launch.experiments import directories
from repertory.launch.opening import run_metadata
from repertory.launch.results import runs as runs_lib
from repertory.launch.results import wording

# Topologies of one thread, in which the rate limiter never blocks.
_TAKE_TURNS = ('single', 'anakin')


def pace(run: runs_lib.RunRecord) -> dict[str, str]:
  """Returns a row on the speed and the waiting of a run, as text.

  Blocked is the share of time in which the rate limiter makes one side wait.
  """
  seconds = run.elapsed_seconds or 0.0
  inserts_wait = samples_wait = None
  bottleneck = 'acting and learning take turns'
  if run.topology not in _TAKE_TURNS:
    inserts_wait = _mean(run, 'replay', 'inserts_wait')
    samples_wait = _mean(run, 'replay', 'samples_wait')
    bottleneck = _name_bottleneck(inserts_wait, samples_wait)

  def per_second(steps: int | None) -> str:
    return wording.number(steps / seconds if seconds and steps else None)

  return {
    'steps/s': per_second(run.steps),
    'updates/s': per_second(run.learner_steps),
    'acting blocked': wording.share(inserts_wait),
    'learning blocked': wording.share(samples_wait),
    'bottleneck': bottleneck,
  }


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


def incidents(run: runs_lib.RunRecord) -> list[dict[str, str]]:
  """Returns a row for each restart, warning, stall or failure of a run."""
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
  with contextlib.suppress(OSError):
    folder = directories.DIVERGED
    for name in regular_files.list_inside(run.directory, folder):
      counted['diverged', f'the batch is in {folder}/{name}'] += 1
  with contextlib.suppress(OSError):
    stall = os.path.join(directories.LOGS, 'stall.txt')
    with regular_files.open_inside(run.directory, stall) as file:
      counted['stalled', file.readline().decode(errors='replace').strip()] += 1
  if run.state == runs_lib.FAILED or (
    run.state == runs_lib.INTERRUPTED and run.why
  ):
    counted[run.state, _last_line(run.why)] += 1
  for problem in run.problems:
    counted['unreadable', problem] += 1
  return [
    {'kind': kind, 'description': text + (f' (× {n})' if n > 1 else '')}
    for (kind, text), n in counted.items()
  ]


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


def _last_line(text: object) -> str:
  lines = str(text).strip().splitlines()
  return lines[-1] if lines else ''
