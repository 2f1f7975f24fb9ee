"""Finds the directories of runs; reads their settings, state and results."""

import dataclasses
import datetime
import functools
import math
import os
import signal
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from repertory.agents.reward_models import reward_model_config
from repertory.components.config.settings import SettingError
from repertory.launch.experiments import directories
from repertory.launch.opening import run_metadata
from repertory.launch.results import logs as logs_lib

# States besides the outcomes of `run_metadata`.
RUNNING, NEVER_BEGUN, UNREADABLE = 'running', 'never begun', 'unreadable'

_T = TypeVar('_T')

_POSITIONED = ('actors', 'learner', 'replay', 'evaluator')
_NO_RUN = 'no run in it'


class EvaluationRow(NamedTuple):
  """Result of an evaluation.

  Attributes:
    episode_return: Mean undiscounted return of its episodes.
    steps: Environment steps of training before it.
  """

  episode_return: float
  steps: int


@dataclasses.dataclass(frozen=True)
class RunRecord:
  """Results and settings of a run, over all its starts; None if unknown.

  Attributes:
    directory: Path of its directory, as given.
    state: 'running', 'done', 'interrupted', 'failed', 'never begun' or
      'unreadable'.
    why: Explanation of the state, or ''.
    agent: Name of the agent.
    environment: Name of the environment.
    seed: The seed.
    settings: Settings of the agent, 'builder', 'num_environments',
      'config.<name>', 'table.<name>', and of topology and launcher at its last
      start.
    experiment: Settings of `launch.Experiment` at its last start, such as
      'max_steps'.
    max_steps: Total number of environment steps.
    reward_model: Name of its reward model (`--reward_model`).
    data: Folders of its offline data or demonstrations.
    topology: Name of the topology at its last start.
    initial_from: Directory of the run whose networks it began with; None for
      new ones.
    steps: Environment steps so far.
    learner_steps: Updates so far.
    elapsed_seconds: Total duration of all its starts.
    cpu_seconds: Total CPU time of all its starts, on the host of the launching
      process; None if one of them was killed, or has not ended.
    ended: Time of its end; for a running one, of its last log.
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
  max_steps: int | None = None
  reward_model: str | None = None
  data: Sequence[str] = ()
  topology: str | None = None
  initial_from: str | None = None
  steps: int | None = None
  learner_steps: int | None = None
  elapsed_seconds: float | None = None
  cpu_seconds: float | None = None
  ended: datetime.datetime | None = None
  logs: logs_lib.Logs = dataclasses.field(
    default_factory=lambda: logs_lib.Logs(''), compare=False, repr=False
  )

  @functools.cached_property
  def evaluations(self) -> Sequence[EvaluationRow]:
    """All evaluations whose return and steps are known."""
    returns, steps = (
      self.logs.column('evaluator', name)
      for name in ('episode_return', 'steps')
    )
    return [
      EvaluationRow(float(value), int(step))
      for value, step in zip(returns, steps)
      if math.isfinite(value) and math.isfinite(step)
    ]

  @property
  def last(self) -> EvaluationRow | None:
    """Its last evaluation."""
    return self.evaluations[-1] if self.evaluations else None

  @property
  def best(self) -> EvaluationRow | None:
    """The evaluation with the highest mean return."""
    return max(self.evaluations, default=None)


class Found(NamedTuple):
  """Runs found in folders.

  Attributes:
    runs: Readable runs, sorted by directory.
    others: Folders without a readable run, and the reasons.
  """

  runs: Sequence[RunRecord]
  others: Sequence[tuple[str, str]]

  def describe_others(self) -> str:
    """Returns a line that names the folders left out, or ''."""
    text = ', '.join(f'{path} ({why})' for path, why in self.others)
    return f'Left out: {text}.' if text else ''

  def describe_problems(self) -> str:
    """Returns a line on the unreadable files of runs so far, or ''."""
    text = '; '.join(one for run in self.runs for one in run.logs.problems)
    return f'Could not be read: {text}.' if text else ''


def find(paths: Iterable[str]) -> Found:
  """Finds and reads all runs in folders, and in the folders in them.

  Folders whose name begins with a dot are skipped, and links are not followed,
  unless given in `paths`. The same holds for directories moved aside by
  `--fresh`.

  Args:
    paths: Directories of runs, or folders of them.

  Raises:
    SettingError: If one of them is not a folder.
  """
  paths = [os.fspath(path) for path in paths]
  for path in paths:
    if not os.path.isdir(path):
      what = 'a file' if os.path.exists(path) else 'not there'
      raise SettingError(
        'paths', f'must be folders with runs; {path} is {what}.'
      )
  named: dict[str, str] = {}  # By real path.
  others: dict[str, str] = {}
  for path in paths:
    for directory, why in _search(path):
      if why:
        others[directory] = why
      else:
        named.setdefault(os.path.realpath(directory), directory)
  runs = [read(directory) for directory in sorted(named.values())]
  readable = [run for run in runs if run.state != UNREADABLE]
  others.update((r.directory, r.why) for r in runs if r.state == UNREADABLE)
  return Found(readable, sorted(others.items()))


def _search(top: str) -> list[tuple[str, str]]:
  """Returns the runs under a folder with '', other folders with a reason."""
  # A lock is that of a run even without logs.
  marks = (directories.LOCK, f'{directories.LOGS}/{run_metadata.FILE}')
  if any(os.path.isfile(os.path.join(top, mark)) for mark in marks):
    return [(top, '')]
  try:
    with os.scandir(top) as entries:
      folders = sorted(
        entry.path
        for entry in entries
        if entry.is_dir(follow_symlinks=False)
        and not entry.name.startswith('.')
      )
  except OSError as error:
    return [(top, logs_lib.explain(error))]
  inside = []
  for folder in folders:
    if directories.is_aside(folder):
      inside.append((folder, 'set aside by --fresh'))
    else:
      inside += _search(folder)
  if all(why == _NO_RUN for _, why in inside):
    return [(top, _NO_RUN)]
  return inside


def read(directory: str) -> RunRecord:
  """Reads a run's directory; logs are read on first access.

  It never raises: the result describes what is missing or broken.

  Args:
    directory: Directory of a run, which may still be running.
  """
  directory = os.fspath(directory)
  try:
    os.listdir(directory)
    return _read(directory)
  except Exception as error:  # Broken content may raise anything.
    return RunRecord(directory, UNREADABLE, logs_lib.explain(error))


def _read(directory: str) -> RunRecord:
  """Reads a run, converting its values, as the files may be anybody's."""
  is_held = directories.is_held(directory)
  logs = logs_lib.Logs(os.path.join(directory, directories.LOGS))
  starts = logs.rows(run_metadata.FILE.removesuffix('.jsonl'))
  begun = next((s for s in reversed(starts) if run_metadata.BEGUN in s), {})
  ended = starts[-1] if starts and run_metadata.ENDED in starts[-1] else {}
  experiments = [dict(start.get('experiment') or {}) for start in starts]
  experiment = dict(begun.get('experiment') or {})
  settings = reward_model_config.with_present_names(
    dict(begun.get('config') or {})
  )
  for name in ('topology_settings', 'launch_settings'):
    settings.update(begun.get(name) or {})
  if begun.get('launch_type'):
    settings['launch_type'] = begun['launch_type']
  # The command that resumes a run may omit it.
  initial = [one.get('initial_from') for one in experiments]

  def last(name: str) -> float | None:
    """Returns the highest value of a count in logs and records."""
    values = [logs.last(label, name) for label in _POSITIONED]
    values += [begun.get(name), ended.get(name)]
    return max((float(v) for v in values if v is not None), default=None)

  steps = last('steps')
  state, why = _judge(is_held, begun, ended, bool(steps))
  return RunRecord(
    directory,
    state,
    why,
    agent=_convert(str, settings.pop('agent', None)),
    environment=_convert(str, settings.pop('environment', None)),
    seed=_convert(int, settings.pop('seed', None)),
    settings=settings,
    experiment=experiment,
    max_steps=_convert(int, experiment.get('max_steps')),
    reward_model=_convert(str, settings.get('reward_model')),
    data=[
      *map(str, settings.get('data') or experiment.get('demonstrations') or ())
    ],
    topology=_convert(str, begun.get('topology')),
    initial_from=_convert(str, next(filter(None, initial), None)),
    steps=_convert(int, steps),
    learner_steps=_convert(int, last('learner_steps')),
    elapsed_seconds=last('elapsed_seconds'),
    cpu_seconds=_sum_cpu_seconds(starts),
    ended=_read_time(directory, ended.get(run_metadata.ENDED)),
    logs=logs,
  )


def _sum_cpu_seconds(starts: Sequence[Mapping[str, Any]]) -> float | None:
  """Returns the CPU time of all starts, from their lines of begin and end."""
  num_starts = sum(run_metadata.BEGUN in row for row in starts)
  name = run_metadata.CPU_SECONDS
  found = [float(row[name]) for row in starts if name in row]
  return sum(found) if found and len(found) == num_starts else None


def _convert(kind: Callable[[Any], _T], value: Any) -> _T | None:
  return None if value is None else kind(value)


def _judge(
  is_held: bool,
  begun: Mapping[str, Any],
  ended: Mapping[str, Any],
  has_steps: bool,
) -> tuple[str, str]:
  """Returns the state of a run, and an explanation."""
  if is_held:
    return RUNNING, ''
  if not begun:
    if has_steps:
      return UNREADABLE, 'its agent and environment are unknown'
    return NEVER_BEGUN, ''
  if not ended:
    return (
      run_metadata.INTERRUPTED,
      'its process ended without logging an outcome',
    )
  if ended.get('signal') is not None:
    why = f'by {signal.Signals(ended["signal"]).name}'
  else:
    causes = filter(None, [ended.get('node'), ended.get('cause')])
    why = ': '.join(map(str, causes))
  return str(ended['state']), why


def _read_time(directory: str, ended: str | None) -> datetime.datetime | None:
  """Returns the logged time, or else that at which a log was last written."""
  try:
    return datetime.datetime.fromisoformat(ended or '')
  except (TypeError, ValueError):
    pass
  folder = os.path.join(directory, directories.LOGS)
  paths = [os.path.join(folder, f'{label}.csv') for label in _POSITIONED]
  times = [os.path.getmtime(path) for path in paths if os.path.exists(path)]
  if not times:
    return None
  return datetime.datetime.fromtimestamp(max(times), datetime.timezone.utc)
