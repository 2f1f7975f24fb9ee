"""Callbacks of runs: their events, loggers and early stopping."""

import abc
import dataclasses
import importlib.util
import math
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import cloudpickle
import numpy as np

from repertory.components.actors import episode_metrics
from repertory.components.config import settings as settings_lib

if TYPE_CHECKING:
  from repertory.components import loggers

# Outcomes of a run, see `EndEvent`.
DONE = 'done'
STOPPED_EARLY = 'stopped early'
INTERRUPTED = 'interrupted'
FAILED = 'failed'


@dataclasses.dataclass(frozen=True)
class RunEvent:
  """Start of a run, new or resumed.

  Attributes:
    title: Title of the run, as displayed.
    directory: The experiment's directory, which has `logs/` and `checkpoints/`.
    settings: All settings of the run, as plain values by name: the fields of
      the experiment, except for its storage, which may contain a password; the
      agent's as `config.<name>`; `topology` and `topology_settings`; and, if
      the topology has several nodes, `launch_type` and `launch_settings`.
    steps: Environment steps before this start.
    learner_steps: Learner steps before this start.
    episodes: Training episodes before this start.
    elapsed_seconds: Run time before this start.
    is_resumed: Whether the run resumes from a checkpoint.
    num_restarts: Restarts of nodes in this run, before this start.
  """

  title: str
  directory: str
  settings: Mapping[str, Any]
  steps: int = 0
  learner_steps: int = 0
  episodes: int = 0
  elapsed_seconds: float = 0.0
  is_resumed: bool = False
  num_restarts: int = 0


@dataclasses.dataclass(frozen=True)
class EpisodesEvent:
  """Training episodes that ended since the last report.

  Attributes:
    returns: Sums of rewards, undiscounted. [K]
    lengths: Steps of each. [K]
    num_episodes: Episodes of the run so far, including these.
    steps: Environment steps of the run at the last of them.
    learner_steps: Learner steps, likewise.
    elapsed_seconds: Run time, likewise.
    metrics: Entries of the environments' info in the last step of each episode,
      by the keys in the experiment's `info`. [K] each.
  """

  returns: np.ndarray
  lengths: np.ndarray
  num_episodes: int
  steps: int
  learner_steps: int
  elapsed_seconds: float
  metrics: Mapping[str, np.ndarray] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class EvaluationEvent:
  """An evaluation that has ended.

  Attributes:
    returns: Sums of the rewards of its episodes, undiscounted. [K]
    lengths: Steps of each. [K]
    metrics: The experiment's `evaluation_metrics` of each, by name. [K] each.
    is_best: Whether its mean return is the highest so far.
    steps: Environment steps of training when it ended.
    learner_steps: Learner steps, likewise.
    elapsed_seconds: Run time, likewise.
  """

  returns: np.ndarray
  lengths: np.ndarray
  metrics: Mapping[str, np.ndarray]
  is_best: bool
  steps: int
  learner_steps: int
  elapsed_seconds: float

  @property
  def mean_return(self) -> float:
    return float(self.returns.mean())


@dataclasses.dataclass(frozen=True)
class EndEvent:
  """End of a run.

  Attributes:
    outcome: 'done', 'stopped early', 'interrupted' or 'failed'.
    reason: Reason for the stop or failure; '' if the outcome is 'done'.
    status: The last status.
  """

  outcome: str
  reason: str
  status: 'loggers.Status'


class Callback:
  """Callback for events of a run; override the methods of interest.

  Calls are sequential, in one thread for all callbacks and loggers of the run,
  in the coordinator's process; `on_start` comes first and `on_end` last. The
  run does not wait for them. During a call, episodes are merged and other
  events are queued. If one waits for `timeout_seconds`, the run ends with an
  error, as it does if a callback raises.
  """

  def on_start(self, run: RunEvent) -> None:
    """Called at the start of a run, also if it resumes from a checkpoint."""

  def on_episodes(self, episodes: EpisodesEvent) -> None:
    """Called with all training episodes that ended since the last call.

    Actors report episodes four times a second.
    """

  def on_learner_row(self, row: Mapping[str, Any]) -> None:
    """Called about once a second, with each row of `logs/learner.csv`."""

  def on_evaluation(self, evaluation: EvaluationEvent) -> None:
    """Called after each evaluation."""

  def on_end(self, end: EndEvent) -> None:
    """Called at the end, after the last checkpoint; also after a failure."""


class RowLogger(abc.ABC):
  """Logger of all log rows of a run.

  Calls are sequential, in the same thread as callbacks. Its errors do not end
  the run: exceptions are reported as warnings. If `start` raises, the logger is
  not called again. If rows wait for `timeout_seconds`, the run ends.
  """

  def start(self, run: RunEvent) -> None:  # noqa: B027
    """Starts logging, or resumes if `run.is_resumed`."""

  @abc.abstractmethod
  def write(self, label: str, row: Mapping[str, Any]) -> None:
    """Logs a row.

    Args:
      label: 'actors', 'learner', 'replay', 'evaluator' or 'inference'.
      row: Plain values by column; see the operations page of the docs.
    """

  def close(self, end: EndEvent) -> None:  # noqa: B027
    """Flushes buffered rows and closes."""


@dataclasses.dataclass(frozen=True)
class StopAtReturn:
  """Stops a run once an evaluation reaches a mean return.

  Attributes:
    stop_at_return: The threshold, inclusive.
  """

  stop_at_return: float

  def __post_init__(self):
    if not math.isfinite(self.stop_at_return):
      raise settings_lib.SettingError(
        'stop_at_return', f'must be a finite number; got {self.stop_at_return}.'
      )

  def __call__(self, status: 'loggers.Status') -> str:
    """Returns the reason to stop; '' to continue."""
    found = status.evaluation_return
    if found is None or found < self.stop_at_return:
      return ''
    return (
      f'after {status.evaluation_steps} steps an evaluation had a mean return '
      f'of {found:.4g}, and {self.stop_at_return:g} is enough'
    )


# Columns of all rows; the first is the x-axis.
_POSITION = ('steps', 'learner_steps', 'elapsed_seconds')


class WandB(RowLogger):
  """Logs rows to Weights & Biases, online or offline.

  Metrics are named `<label>/<column>`, such as 'actors/episode_return', and
  plotted over environment steps. The settings of the experiment are the config.
  A resumed run resumes its W&B run.
  """

  def __init__(self, project: str, **settings: Any):
    """Checks that the package `wandb` (an extra) is installed.

    Args:
      project: Name of the W&B project.
      **settings: Further arguments of `wandb.init`, such as `name`, `entity`,
        `tags`, or `mode='offline'`, which needs neither network nor account.

    Raises:
      SettingError: If the package is missing.
    """
    if not project:
      raise settings_lib.SettingError(
        'project', f'must be the name of a project; got {project!r}.'
      )
    if importlib.util.find_spec('wandb') is None:
      raise settings_lib.SettingError(
        'project',
        "needs the package wandb: pip install 'repertory[wandb]'.",
      )
    self._project = project
    self._settings = settings
    self._run: Any = None

  def start(self, run: RunEvent) -> None:
    """Starts a W&B run, or resumes that of `run.directory`."""
    import wandb  # noqa: PLC0415 An extra that is slow to import.

    folder = os.path.join(run.directory, 'logs')
    path = os.path.join(folder, 'wandb_run_id')
    defaults = {
      'dir': folder,
      'config': dict(run.settings),
      'name': run.title,
      # The terminal is used by the display.
      'settings': wandb.Settings(console='off', silent=True),
    }
    if run.is_resumed and os.path.exists(path):
      with open(path) as file:
        defaults |= {'id': file.read(), 'resume': 'allow'}
    self._run = wandb.init(
      project=self._project, **{**defaults, **self._settings}
    )
    self._run.define_metric('*', step_metric=_POSITION[0])
    with open(f'{path}.tmp', 'w') as file:
      file.write(self._run.id)
    os.replace(f'{path}.tmp', path)  # Never half of an id, after a kill.

  def write(self, label: str, row: Mapping[str, Any]) -> None:
    """Logs the numbers of a row."""
    prefix = row.get('node', label)
    self._run.log(
      {
        name if name in _POSITION else f'{prefix}/{name}': value
        for name, value in row.items()
        if isinstance(value, (int, float))
      }
    )

  def close(self, end: EndEvent) -> None:
    """Ends the W&B run, as failed if the run failed."""
    if self._run is not None:
      self._run.finish(exit_code=int(end.outcome == FAILED))


def _check_kind(setting: str, found: Any, kind: type) -> None:
  """Checks that callbacks are a sequence of objects of one class."""
  if not isinstance(found, (list, tuple)):
    raise settings_lib.SettingError(
      setting,
      f'must be a list of `launch.{kind.__name__}` objects; got {found!r}.',
    )
  for index, one in enumerate(found):
    if not isinstance(one, kind):
      is_class = isinstance(one, type) and issubclass(one, kind)
      hint = f' Write {one.__name__}().' if is_class else ''
      raise settings_lib.SettingError(
        setting,
        f'must be objects of subclasses of `launch.{kind.__name__}`; '
        f'got {one!r} at index {index}.{hint}',
      )


def check(experiment: Any) -> None:
  """Checks an experiment's callbacks and evaluation settings.

  Args:
    experiment: A `launch.Experiment`.

  Raises:
    SettingError: If a field is invalid; names the field.
  """
  _check_kind('callbacks', experiment.callbacks, Callback)
  _check_kind('loggers', experiment.loggers, RowLogger)
  known = [one for one in vars(Callback) if one.startswith('on_')]
  for index, one in enumerate(experiment.callbacks):
    for method in dir(type(one)):
      if method.startswith('on_') and method not in known:
        raise settings_lib.SettingError(
          'callbacks',
          f'must have no unknown methods on_*; callbacks[{index}] of class '
          f'{type(one).__name__} has {method}.'
          + settings_lib.did_you_mean(method, known),
        )
  stop_when = experiment.stop_when
  factory = experiment.evaluation_environment_factory
  for setting, found, kind in (
    ('stop_when', stop_when, 'a function of the status'),
    ('evaluation_environment_factory', factory, 'a function of a seed'),
  ):
    if not (found is None or callable(found)):
      raise settings_lib.SettingError(
        setting, f'must be {kind}, or None; got {found!r}.'
      )
  episode_metrics.check(experiment.evaluation_metrics)
  episode_metrics.check_info(experiment.info, experiment.evaluation_metrics)
  for setting, is_given in (
    ('evaluation_environment_factory', factory is not None),
    ('evaluation_metrics', bool(experiment.evaluation_metrics)),
    ('stop_at_return', isinstance(stop_when, StopAtReturn)),
  ):
    if is_given and not experiment.evaluation_episodes:
      raise settings_lib.SettingError(
        setting,
        'must be left out if there are no evaluations: evaluation_episodes is '
        '0.',
      )


def check_can_travel(experiment: Any, launch_type: str) -> None:
  """Raises SettingError if one cannot be pickled, as a launcher must."""
  named = [('stop_when', 'stop_when', experiment.stop_when)]
  for setting in ('callbacks', 'loggers'):
    for index, one in enumerate(getattr(experiment, setting)):
      named.append((setting, f'{setting}[{index}]', one))
  for setting, name, one in named:
    try:
      cloudpickle.dumps(one)
    except Exception as error:
      raise settings_lib.SettingError(
        setting,
        f'must be picklable with launch type {launch_type!r}, which runs '
        f'callbacks in a separate process; got {name}, a {type(one).__name__}, '
        f'which raises {type(error).__name__}: {error}. Open files and '
        'connections when the run starts.',
      ) from error
