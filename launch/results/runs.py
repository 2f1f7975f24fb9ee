"""Reads a run's directory: settings, progress, state and results."""

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

from repertory.agents.reward_models import reward_model_config
from repertory.components.checkpoints import checkpointing
from repertory.components.config import regular_files
from repertory.launch.opening import directories, run_metadata
from repertory.launch.results import logs as logs_lib

RUNNING = 'running'
DONE, INTERRUPTED, FAILED = (
  run_metadata.DONE,
  run_metadata.INTERRUPTED,
  run_metadata.FAILED,
)
ENDED = 'ended'  # Of earlier versions, which logged no outcome.
NEVER_BEGUN = 'never begun'
UNREADABLE = 'unreadable'
STATES = (RUNNING, DONE, INTERRUPTED, FAILED, ENDED, NEVER_BEGUN, UNREADABLE)

_INITIAL_FROM = 'initial_from'  # Key in experiments and in checkpoints.
_DEMONSTRATIONS = 'demonstrations'  # Key in experiments.
_DATA = 'data'  # Key in settings of topologies.

# Expected types of values that are used unconverted.
_KINDS_OF_IDENTITY = {
  'agent': str,
  'environment': str,
  'seed': int,
  reward_model_config.REWARD_MODEL: str,
}
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


class EvaluationRow(NamedTuple):
  """Result of an evaluation.

  Attributes:
    episode_return: Mean undiscounted return of its episodes.
    steps: Environment steps of training before it.
    deviation: Standard deviation of the returns; None if unknown.
    num_episodes: Number of episodes; None if unknown.
  """

  episode_return: float
  steps: int
  deviation: float | None = None
  num_episodes: int | None = None


@dataclasses.dataclass(frozen=True)
class RunRecord:
  """Results and settings of a run, over all its starts; None if unknown.

  Attributes:
    directory: Path of its directory, as given.
    state: One of `STATES`.
    why: Explanation of the state, or ''.
    agent: Name of the agent.
    environment: Name of the environment.
    seed: The seed.
    settings: Settings that must not change when it is resumed, except agent,
      environment and seed: 'builder', 'num_environments', 'config.<name>',
      'table.<name>'.
    experiment: Settings of `launch.Experiment` at its last start, such as
      'max_steps'.
    topology: Name of the topology at its last start.
    wiring: Settings of topology and launcher at its last start.
    initial_from: Directory of the run whose networks it began with; None for
      new ones.
    steps: Environment steps so far.
    learner_steps: Updates so far.
    elapsed_seconds: Total duration of all its starts.
    begun: Time of its last start.
    ended: Time of its end; for a running one, of its last log.
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
  best: EvaluationRow | None = None
  starts: Sequence[Mapping[str, Any]] = ()
  logs: logs_lib.Logs = dataclasses.field(
    default_factory=lambda: logs_lib.Logs(''), compare=False, repr=False
  )

  @property
  def problems(self) -> Sequence[str]:
    """Descriptions of what could not be read so far."""
    return self.logs.problems

  @property
  def reward_model(self) -> str | None:
    """Name of its reward model (`--reward_model`), or None."""
    return self.settings.get(reward_model_config.REWARD_MODEL)

  @property
  def data(self) -> tuple[str, ...]:
    """Folders of its offline data or demonstrations."""
    of_topology = self.wiring.get('topology_settings') or {}
    of_experiment = self.experiment.get(_DEMONSTRATIONS)
    return tuple(map(str, of_topology.get(_DATA) or of_experiment or ()))

  @property
  def max_steps(self) -> int | None:
    """Total number of environment steps."""
    return self.experiment.get('max_steps')

  @functools.cached_property
  def last(self) -> EvaluationRow | None:
    """Its last evaluation."""
    return next(reversed(_evaluations(self.logs)), None)


def read(directory: str) -> RunRecord:
  """Reads a run's directory; logs are read on first access.

  It never raises: the result describes what is missing or broken.

  Args:
    directory: Directory of a run, which may still be running.
  """
  directory = os.fspath(directory)
  try:
    os.listdir(directory)
    is_held = directories.is_held(directory)
  except OSError as error:
    return RunRecord(directory, UNREADABLE, logs_lib.explain(error))
  try:
    return _read(directory, is_held)
  except Exception as error:  # Broken content may raise anything.
    return RunRecord(directory, UNREADABLE, f'{type(error).__name__}: {error}')


def _read(directory: str, is_held: bool) -> RunRecord:
  logs = logs_lib.Logs(os.path.join(directory, directories.LOGS))
  starts = logs.rows(run_metadata.FILE.removesuffix('.jsonl'))
  begun = next(
    (row for row in reversed(starts) if run_metadata.BEGUN in row), {}
  )
  ended = starts[-1] if starts and run_metadata.ENDED in starts[-1] else {}
  for row in (begun, ended):
    _check(row, _KINDS_OF_START)
  saved = _load_state(directory, directories.CHECKPOINTS, logs.problems)
  kept = _load_state(directory, directories.BEST, logs.problems)
  identity = reward_model_config.with_present_names(
    begun.get('config') or _learner_config(logs) or saved.get('experiment', {})
  )
  counts = saved.get('counts', {})
  steps = _last(logs, 'steps', begun, ended, counts)
  experiment = begun.get('experiment', {})
  _check(identity, _KINDS_OF_IDENTITY)
  _check(experiment, _KINDS_OF_EXPERIMENT)
  _check(begun.get('topology_settings') or {}, {_DATA: list})
  # The command that resumes a run may omit it.
  initial = saved.get(_INITIAL_FROM) or {}
  _check(initial, {'directory': str})
  state, why = _judge(is_held, begun, ended, bool(steps), bool(identity))
  return RunRecord(
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
    begun=_parse_time(begun.get(run_metadata.BEGUN)),
    ended=_parse_time(ended.get(run_metadata.ENDED)) or _last_change(directory),
    best=_best(logs, kept),
    starts=starts,
    logs=logs,
  )


def _check(found: Mapping[str, Any], kinds: Mapping[str, type]) -> None:
  """Raises ValueError if a value has an unexpected type."""
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
  """Returns the state of a run, and an explanation."""
  if is_held:
    return RUNNING, ''
  if ended:
    return ended.get('state', ENDED), _explain_end(ended)
  if begun:
    return INTERRUPTED, 'its process ended without logging an outcome'
  if not has_steps:
    return NEVER_BEGUN, ''
  if not is_known:
    return UNREADABLE, 'its agent and environment are unknown'
  return ENDED, 'its outcome was not logged'


def _explain_end(ended: Mapping[str, Any]) -> str:
  """Names the signal that ended a run, or the failed node and the cause."""
  if ended.get('signal') is not None:
    return f'by {signal.Signals(ended["signal"]).name}'
  return ': '.join(filter(None, [ended.get('node'), ended.get('cause')]))


def _learner_config(logs: logs_lib.Logs) -> Mapping[str, Any]:
  """Returns the config that the learner logged last."""
  for row in reversed(logs.rows('nodes')):
    if isinstance(row.get('config'), dict):
      return row['config']
  return {}


def _last(
  logs: logs_lib.Logs, name: str, *others: Mapping[str, Any]
) -> float | None:
  """Returns the highest value of a count in logs and other records."""
  values = [logs.last(label, name) for label in _POSITIONED]
  values += [one.get(name) for one in others]
  return max((v for v in values if v is not None), default=None)


def _best(logs: logs_lib.Logs, kept: Mapping[str, Any]) -> EvaluationRow | None:
  """Returns the best evaluation, from its checkpoint or else from the logs."""
  if kept.get('evaluation'):
    return EvaluationRow(**kept['evaluation'])
  found = _evaluations(logs)
  return max(found, key=lambda one: one.episode_return, default=None)


def _evaluations(logs: logs_lib.Logs) -> list[EvaluationRow]:
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
    EvaluationRow(
      float(value),
      int(steps),
      None if np.isnan(deviation) else float(deviation),
      None if np.isnan(count) else int(count),
    )
    for value, steps, deviation, count in rows
    if np.isfinite(value) and np.isfinite(steps)
  ]


def newest_checkpoint(directory: str, folder: str) -> str | None:
  """Returns the newest checkpoint in a folder of a run, or None."""
  try:
    path = os.path.join(directory, folder)
    return checkpointing.Checkpointer(path).newest()
  except OSError:
    return None


def _load_state(
  directory: str, folder: str, problems: list[str]
) -> Mapping[str, Any]:
  """Reads the state of the newest checkpoint in a folder, or {}."""
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
    return {}  # It was replaced by a newer one, or is damaged.
  except (OSError, ValueError) as error:
    problems.append(f'{path}: {logs_lib.explain(error)}')
    return {}


def _last_change(directory: str) -> datetime.datetime | None:
  """Returns the time at which a log was last written."""
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
