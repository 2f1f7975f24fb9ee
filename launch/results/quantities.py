"""Quantities of runs to plot, as series over steps, updates or seconds."""

import dataclasses
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from repertory.components.config.settings import SettingError, did_you_mean
from repertory.launch.results import runs as runs_lib

# x-axes of curves: columns that every log has, and their titles.
AXES = {
  'steps': 'environment steps',
  'learner_steps': 'learner steps',
  'elapsed_seconds': 'seconds of running',
}

_LEARNER = 'learner'
_LOSS = 'loss'
_NODE = 'node'  # Column that names the node of a row.
# Suffixes of columns with statistics of another column.
_SUFFIXES = ('_min', '_max', '_count', '_nonfinite')


class Series(NamedTuple):
  """Values of one run; all `[N]`.

  Attributes:
    x: Positions, which never decrease.
    y: Finite values.
    weight: Weights of the values in averages, above 0.
  """

  x: np.ndarray
  y: np.ndarray
  weight: np.ndarray


@dataclasses.dataclass(frozen=True)
class Quantity:
  """A quantity that can be plotted.

  Attributes:
    name: Name by which it is chosen.
    title: Title, with its unit.
    series: Function of a run and one of `AXES` that returns the series; empty
      if the run lacks it.
    reference: Target value, drawn as a line; None for none.
    in_view: Least and greatest y that a figure always shows; if the least is 0,
      nothing below it is shown.
    agent: Agent that it belongs to; None for all.
  """

  name: str
  title: str
  series: Callable[[runs_lib.RunRecord, str], Series]
  reference: float | None = None
  in_view: tuple[float, float] | None = None
  agent: str | None = None


def of_column(
  label: str, column: str, title: str = '', agent: str | None = None
) -> Quantity:
  """Returns the quantity of a log's column."""
  return Quantity(
    f'{label}.{column}',
    title or column.replace('_', ' '),
    lambda run, over: _rows(run, label, column, over),
    agent=agent,
  )


def choose(name: str, runs: Sequence[runs_lib.RunRecord]) -> list[Quantity]:
  """Returns the quantities of a name, as given to `--what`.

  Args:
    name: 'return', 'training_return', 'losses', 'ratio', 'lag', 'speed', or
      '<log>.<column>' for any column of a log.
    runs: The runs to plot; losses depend on their agents.

  Raises:
    SettingError: If the name is unknown.
  """
  if name == 'losses':
    return _losses(runs)
  if name in _KNOWN:
    return [_KNOWN[name]]
  label, dot, column = name.partition('.')
  if dot and any(len(run.logs.column(label, column)) for run in runs):
    return [of_column(label, column)]
  near = list(NAMES)
  if dot:
    near = sorted(
      f'{label}.{known}'
      for run in runs
      for known in run.logs.get(label, ())
      if len(run.logs.column(label, known))
    )
  raise SettingError(
    'what',
    f'must be one of {", ".join(NAMES)}, or <log>.<column> with a column of '
    f'numbers in the logs; got {name!r}.{did_you_mean(name, near)}',
  )


def _losses(runs: Sequence[runs_lib.RunRecord]) -> list[Quantity]:
  """Returns the losses of all agents, separately for each agent."""
  found: dict[tuple[str, str], Quantity] = {}
  for run in runs:
    for column in run.logs.get(_LEARNER, ()):
      is_loss = column == _LOSS or column.endswith(f'_{_LOSS}')
      if is_loss and run.agent and not column.endswith(_SUFFIXES):
        title = f'{run.agent}: {column.replace("_", " ")}'
        found[run.agent, column] = of_column(_LEARNER, column, title, run.agent)
  return [found[key] for key in sorted(found)]


def _rows(
  run: runs_lib.RunRecord, label: str, column: str, over: str
) -> Series:
  y = run.logs.column(label, column)
  nodes = run.logs.get(label, {}).get(_NODE, ())
  if len(nodes) == len(y):
    y = _mean_of_nodes(nodes, y)
  x = run.logs.column(label, over)
  # A merged row is a mean over `count` values.
  weight = run.logs.column(label, f'{column}_count')
  counts = run.logs.column(label, 'count')
  if not len(weight):
    weight = counts
  elif len(counts):
    weight = np.where(np.isnan(weight), counts, weight)
  return _clean(x, y, weight if len(weight) else np.ones(len(y)))


def _mean_of_nodes(nodes: Iterable[Hashable], y: np.ndarray) -> np.ndarray:
  """Returns the running mean over nodes of the last value of each."""
  newest: dict[Hashable, float] = {}
  means = np.full(len(y), np.nan)
  for row, (node, value) in enumerate(zip(nodes, y)):
    if np.isfinite(value):
      newest[node] = value
      means[row] = sum(newest.values()) / len(newest)
  return means


def _ratio(run: runs_lib.RunRecord, over: str) -> Series:
  achieved = _rows(run, 'replay', 'samples_per_insert', over)
  target = _rows(run, 'replay', 'target_samples_per_insert', over)
  if not len(target.y):
    return _NOTHING
  return achieved._replace(y=achieved.y / target.y[-1])


def _lag(run: runs_lib.RunRecord, over: str) -> Series:
  """Returns the policy lag, as seen by the learner or else by inference."""
  learned = _rows(run, _LEARNER, 'policy_lag', over)
  if len(learned.y):
    return learned
  version = run.logs.column('inference', 'version')
  newest = run.logs.column('inference', 'learner_steps')
  if not len(version):
    return _NOTHING
  lag = np.maximum(newest - version, 0)
  x = run.logs.column('inference', over)
  return _clean(x, np.where(version < 0, np.nan, lag), np.ones(len(lag)))


def _speed(run: runs_lib.RunRecord, over: str) -> Series:
  """Returns environment steps per second, between rows of the actors' log."""
  steps = run.logs.column('actors', 'steps')
  seconds = run.logs.column('actors', 'elapsed_seconds')
  x = run.logs.column('actors', over)
  if len(steps) < 2:
    return _NOTHING
  taken = np.diff(seconds)
  with np.errstate(divide='ignore', invalid='ignore'):
    speed = np.where(taken > 0, np.diff(steps) / taken, np.nan)
  return _clean((x[1:] + x[:-1]) / 2, speed, taken)


def _clean(x: np.ndarray, y: np.ndarray, weight: np.ndarray) -> Series:
  """Removes non-finite values and those without weight."""
  if not len(x) == len(y) == len(weight):
    return _NOTHING
  kept = np.isfinite(x) & np.isfinite(y) & (weight > 0)
  return Series(x[kept], y[kept], weight[kept])


_NOTHING = Series(np.empty(0), np.empty(0), np.empty(0))
_KNOWN = {
  quantity.name: quantity
  for quantity in (
    dataclasses.replace(
      of_column('evaluator', 'episode_return', 'return of evaluations'),
      name='return',
    ),
    dataclasses.replace(
      of_column('actors', 'episode_return', 'return of training episodes'),
      name='training_return',
    ),
    Quantity(
      'ratio', 'samples per insert ÷ target', _ratio, 1.0, in_view=(0.9, 1.1)
    ),
    Quantity('lag', 'policy lag, learner steps', _lag, in_view=(0.0, 1.0)),
    Quantity(
      'speed', 'environment steps per second', _speed, in_view=(0.0, 1.0)
    ),
  )
}
NAMES = (*_KNOWN, 'losses')
