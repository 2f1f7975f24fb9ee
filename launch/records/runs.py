"""What the directory of a run tells: what ran, how far it came, how it is."""

import contextlib
import dataclasses
import datetime
import functools
import json
import os
import signal
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from repertory.components import checkpointing, regular_files
from repertory.launch.records import logs as logs_lib
from repertory.launch.runs import directories, ledger

RUNNING = 'running'
DONE, INTERRUPTED, FAILED = ledger.DONE, ledger.INTERRUPTED, ledger.FAILED
ENDED = 'ended'  # How, was not written down by earlier versions.
NEVER_BEGUN = 'never begun'
UNREADABLE = 'unreadable'
STATES = (RUNNING, DONE, INTERRUPTED, FAILED, ENDED, NEVER_BEGUN, UNREADABLE)

_INITIAL_FROM = 'initial_from'  # Of an experiment, and of its checkpoints.
_DEMONSTRATIONS = 'demonstrations'  # Of an experiment.
_DATA = 'data'  # Of a topology.
_WRAP = 'wrap'  # Of an identity.

# What is used as it is read, by what it must be.
_KINDS_OF_IDENTITY = {'agent': str, 'environment': str, 'seed': int, _WRAP: str}
_KINDS_OF_EXPERIMENT = {
  'max_steps': int,
  _INITIAL_FROM: str,
  _DEMONSTRATIONS: list,
}
_KINDS_OF_START = {
  'config': dict,
  'experiment': dict,
  'topology': str,
  'topology_settings': dict,
  'launch_type': str,
  'launch_settings': dict,
  'state': str,
}
_POSITIONED = ('actors', 'learner', 'replay', 'evaluator')


class Evaluation(NamedTuple):
  """An evaluation.

  Attributes:
    episode_return: The mean undiscounted return of its episodes.
    steps: Environment steps of training by then.
    deviation: Standard deviation of the returns; None if unknown.
    num_episodes: None if unknown.
  """

  episode_return: float
  steps: int
  deviation: float | None = None
  num_episodes: int | None = None


@dataclasses.dataclass(frozen=True)
class Run:
  """What is known of a run, over all its starts; None for what is not.

  Attributes:
    directory: Where it is, as it was found.
    state: One of `STATES`.
    why: What there is to say about that; '' if nothing.
    agent: Name of the agent.
    environment: Name of the environment.
    seed: The seed.
    settings: What must stay the same for it to be resumed, but agent,
      environment and seed: 'builder', 'num_environments', 'config.<name>',
      'table.<name>'.
    experiment: Settings of `launch.Experiment` at its last start, such as
      'max_steps'.
    topology: Name of the topology at its last start.
    wiring: Settings of topology and launcher at its last start.
    initial_from: Directory of the run with whose networks it began; None if it
      began with new ones.
    steps: Environment steps so far.
    learner_steps: Updates so far.
    elapsed_seconds: How long it ran, over all its starts.
    begun: When it was started last.
    ended: When that ended; of a run that goes on, when it was heard of last.
    best: The evaluation with the highest mean return.
    starts: The lines of `logs/runs.jsonl`.
    logs: Its logs as columns: `run.logs['evaluator']['episode_return']`.
  """

  directory: str
  state: str
  why: str = ''
  agent: str | None = None
  environment: str | None = None
  seed: int | None = None
  settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)
  experiment: Mapping[str, Any] = dataclasses.field(default_factory=dict)
  topology: str | None = None
  wiring: Mapping[str, Any] = dataclasses.field(default_factory=dict)
  initial_from: str | None = None
  steps: int | None = None
  learner_steps: int | None = None
  elapsed_seconds: float | None = None
  begun: datetime.datetime | None = None
  ended: datetime.datetime | None = None
  best: Evaluation | None = None
  starts: Sequence[Mapping[str, Any]] = ()
  logs: logs_lib.Logs = dataclasses.field(
    default_factory=lambda: logs_lib.Logs(''), compare=False, repr=False
  )

  @property
  def problems(self) -> Sequence[str]:
    """What could not be read so far, in words."""
    return self.logs.problems

  @property
  def wrap(self) -> str | None:
    """Name of what wraps its agent; None if nothing does."""
    return self.settings.get(_WRAP)

  @property
  def data(self) -> tuple[str, ...]:
    """Folders of the data it learns from, alone or beside replay."""
    of_topology = self.wiring.get('topology_settings') or {}
    of_experiment = self.experiment.get(_DEMONSTRATIONS)
    return tuple(map(str, of_topology.get(_DATA) or of_experiment or ()))

  @property
  def max_steps(self) -> int | None:
    """Environment steps at which it ends."""
    return self.experiment.get('max_steps')

  @functools.cached_property
  def last(self) -> Evaluation | None:
    """Its last evaluation."""
    return next(reversed(_evaluations(self.logs)), None)


def read(directory: str) -> Run:
  """Reads what a run's directory tells; logs are read when they are asked for.

  Whatever is missing or broken there is told in the record, and raises nothing.

  Args:
    directory: A run's, also of one that goes on.
  """
  directory = os.fspath(directory)
  try:
    os.listdir(directory)
    is_held = directories.is_held(directory)
  except OSError as error:
    return Run(directory, UNREADABLE, logs_lib.explain(error))
  try:
    return _read(directory, is_held)
  except Exception as error:  # Content that is broken may raise anything.
    return Run(directory, UNREADABLE, f'{type(error).__name__}: {error}')


def _read(directory: str, is_held: bool) -> Run:
  logs = logs_lib.Logs(os.path.join(directory, directories.LOGS))
  starts = logs.rows(ledger.FILE.removesuffix('.jsonl'))
  begun = next((row for row in reversed(starts) if ledger.BEGUN in row), {})
  ended = starts[-1] if starts and ledger.ENDED in starts[-1] else {}
  for row in (begun, ended):
    _check(row, _KINDS_OF_START)
  saved = _load_state(directory, directories.CHECKPOINTS, logs.problems)
  kept = _load_state(directory, directories.BEST, logs.problems)
  identity = dict(
    begun.get('config') or _learner_config(logs) or saved.get('experiment', {})
  )
  counts = saved.get('counts', {})
  steps = _last(logs, 'steps', begun, ended, counts)
  experiment = begun.get('experiment', {})
  _check(identity, _KINDS_OF_IDENTITY)
  _check(experiment, _KINDS_OF_EXPERIMENT)
  _check(begun.get('topology_settings') or {}, {_DATA: list})
  # Whoever goes on with a run need not name it again.
  initial = saved.get(_INITIAL_FROM) or {}
  _check(initial, {'directory': str})
  state, why = _judge(is_held, begun, ended, bool(steps), bool(identity))
  return Run(
    directory,
    state,
    why,
    agent=identity.pop('agent', None),
    environment=identity.pop('environment', None),
    seed=identity.pop('seed', None),
    settings=identity,
    experiment=experiment,
    topology=begun.get('topology'),
    wiring={
      name: begun[name]
      for name in ('topology_settings', 'launch_type', 'launch_settings')
      if name in begun
    },
    initial_from=initial.get('directory') or experiment.get(_INITIAL_FROM),
    steps=_to_integer(steps),
    learner_steps=_to_integer(
      _last(logs, 'learner_steps', begun, ended, counts)
    ),
    elapsed_seconds=_last(logs, 'elapsed_seconds', begun, ended, saved),
    begun=_parse_time(begun.get(ledger.BEGUN)),
    ended=_parse_time(ended.get(ledger.ENDED)) or _last_change(directory),
    best=_best(logs, kept),
    starts=starts,
    logs=logs,
  )


def _check(found: Mapping[str, Any], kinds: Mapping[str, type]) -> None:
  """Raises ValueError if something is of another kind than it must be."""
  for name, kind in kinds.items():
    if not isinstance(found.get(name), (kind, type(None))):
      raise ValueError(f'{name} is {found[name]!r}')


def _judge(
  is_held: bool,
  begun: Mapping[str, Any],
  ended: Mapping[str, Any],
  has_steps: bool,
  is_known: bool,
) -> tuple[str, str]:
  """Returns the state of a run, and what there is to say about it."""
  if is_held:
    return RUNNING, ''
  if ended:
    return ended.get('state', ENDED), _explain_end(ended)
  if begun:
    return INTERRUPTED, 'its process ended without a word'
  if not has_steps:
    return NEVER_BEGUN, ''
  if not is_known:
    return UNREADABLE, 'nothing tells which agent and environment it is of'
  return ENDED, 'how, was not written down'


def _explain_end(ended: Mapping[str, Any]) -> str:
  """Says which node failed and why, or by which signal a run ended."""
  if ended.get('signal') is not None:
    return f'by {signal.Signals(ended["signal"]).name}'
  return ': '.join(filter(None, [ended.get('node'), ended.get('cause')]))


def _learner_config(logs: logs_lib.Logs) -> Mapping[str, Any]:
  """Returns what the learner told that it runs with last."""
  for row in reversed(logs.rows('nodes')):
    if isinstance(row.get('config'), dict):
      return row['config']
  return {}


def _last(
  logs: logs_lib.Logs, name: str, *others: Mapping[str, Any]
) -> float | None:
  """Returns how far a count got: what is written last, wherever that is."""
  values = [logs.last(label, name) for label in _POSITIONED]
  values += [one.get(name) for one in others]
  return max((v for v in values if v is not None), default=None)


def _best(logs: logs_lib.Logs, kept: Mapping[str, Any]) -> Evaluation | None:
  """Returns the best evaluation, as it was kept or else by the logs."""
  if kept.get('evaluation'):
    return Evaluation(**kept['evaluation'])
  found = _evaluations(logs)
  return max(found, key=lambda one: one.episode_return, default=None)


def _evaluations(logs: logs_lib.Logs) -> list[Evaluation]:
  """Returns all evaluations whose return and steps are known."""
  columns = [
    logs.column('evaluator', name)
    for name in (
      'episode_return',
      'steps',
      'episode_return_deviation',
      'count',
    )
  ]
  size = len(columns[0])
  rows = zip(*(c if len(c) == size else np.full(size, np.nan) for c in columns))
  return [
    Evaluation(
      float(value),
      int(steps),
      None if np.isnan(deviation) else float(deviation),
      None if np.isnan(count) else int(count),
    )
    for value, steps, deviation, count in rows
    if np.isfinite(value) and np.isfinite(steps)
  ]


def newest_checkpoint(directory: str, folder: str) -> str | None:
  """Returns the newest checkpoint in a folder of a run; None if none."""
  try:
    path = os.path.join(directory, folder)
    return checkpointing.Checkpointer(path).newest()
  except OSError:
    return None


def _load_state(
  directory: str, folder: str, problems: list[str]
) -> Mapping[str, Any]:
  """Reads the state of the newest checkpoint in a folder, if there is one."""
  path = newest_checkpoint(directory, folder)
  if path is None:
    return {}
  try:
    name = os.path.join(folder, os.path.basename(path), checkpointing.STATE)
    with regular_files.open_inside(directory, name) as file:
      state = json.load(file)
    if not isinstance(state, dict):
      raise ValueError('it is no JSON object')
    return state
  except FileNotFoundError:
    return {}  # It made way for a newer one, or is damaged.
  except (OSError, ValueError) as error:
    problems.append(f'{path}: {logs_lib.explain(error)}')
    return {}


def _last_change(directory: str) -> datetime.datetime | None:
  """Returns when a log was written last."""
  times = []
  for label in _POSITIONED:
    path = os.path.join(directory, directories.LOGS, f'{label}.csv')
    with contextlib.suppress(OSError):
      times.append(os.path.getmtime(path))
  if not times:
    return None
  return datetime.datetime.fromtimestamp(max(times), datetime.timezone.utc)


def _parse_time(text: str | None) -> datetime.datetime | None:
  try:
    return datetime.datetime.fromisoformat(text) if text else None
  except (TypeError, ValueError):
    return None


def _to_integer(value: float | None) -> int | None:
  return None if value is None else int(value)
