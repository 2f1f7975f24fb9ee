"""Experiment: the definition of a run, independent of its topology."""

import dataclasses
import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import dm_env
import numpy as np

from repertory.agents.interface import config_checks
from repertory.components.actors import episode_metrics
from repertory.components.config import choices
from repertory.components.config import settings as settings_lib
from repertory.launch.experiments import callbacks as callbacks_lib

if TYPE_CHECKING:
  from repertory.agents.interface import builder as builder_lib
  from repertory.components import loggers as loggers_lib
  from repertory.components.transports import experience as experience_lib

EnvironmentFactory = Callable[[int], dm_env.Environment]

# Prefix of the agent's settings in identities.
CONFIG = 'config.'


@dataclasses.dataclass(frozen=True)
class Experiment:
  """An agent, an environment, a number of steps and a seed.

  Equal experiments run the same algorithm in every topology: the same replay
  ratio, exploration and targets.

  Attributes:
    builder: Factory of the agent's components.
    environment_factory: Function from a seed to an environment. Must be
      picklable for runs in several processes.
    max_steps: Total environment steps of the run, over all actors and including
      those before a resume. The last step of an environment batch may exceed it
      by less than the batch size.
    directory: Folder of logs and checkpoints.
    agent: Name of the agent, for the display and the checkpoint.
    environment: Name of the environment, likewise.
    seed: Seed of all random number generators that can be seeded.
    deterministic: Whether learning is bitwise reproducible from the seed, on
      the same machine with the same number of devices. Only some topologies
      support it. Environments are stepped one by one and must be reproducible
      from their seeds.
    eager: Whether policy and update run eagerly, so that `breakpoint()` and
      `print` show numbers. Only in topology `single`, and not in deterministic
      runs. Also set by `tf.config.run_functions_eagerly(True)`.
    num_actors: Actor nodes in topologies with several nodes; in `single`, one
      actor steps the environments of all of them.
    environments_per_actor: Batch size of an actor's environments; None for the
      default of the agent's config. `num_environments_per_actor` is the
      resulting value.
    evaluation_period: Environment steps between evaluations; None for a tenth
      of `max_steps`. A last evaluation follows at the end.
    evaluation_episodes: Episodes per evaluation; 0 disables evaluations.
    checkpoint_period_seconds: Seconds between checkpoints. A last checkpoint
      follows at the end, also of an interrupted run.
    checkpoint_period_learner_steps: Maximum learner steps between checkpoints;
      None for no such limit.
    checkpoint_replay: Whether checkpoints contain the replay tables. If not, a
      resumed run starts with empty tables.
    checkpoints_to_keep: Number of newest checkpoints that are kept.
    checkpoint_errors: Handling of checkpoints that cannot be written, such as
      on a full disk: 'warn' keeps the previous one and retries after the
      period, 'raise' ends the run.
    timeout_seconds: Time-out of waits for other nodes, in seconds.
    stall_seconds: Seconds without an environment step, learner step or
      evaluation after which the run ends with a stall report; also the time
      limit of a step or reset of an environment.
    max_restarts: Maximum restarts of node processes within ten minutes. Loss of
      the learner, the replay server or the coordinator restarts all nodes from
      the last checkpoint. 0 disables restarts.
    on_divergence: Handling of a learner step whose metrics, priorities or
      running statistics are not finite: 'stop' ends the run and saves the
      batch; 'skip' undoes the step and continues, unless a hundred before it
      were skipped in a row.
    initial_from: Directory of another run whose newest network parameters
      initialize a new run; None for random initialization. A resumed run
      ignores it.
    record: Folder to which all training experience is recorded as episodes, see
      `topologies.offline`; None for no recording.
    demonstrations: Folders of recordings or Minari data sets, mixed into every
      batch; see docs/offline.md.
    demonstration_fraction: Fraction of demonstrations in each batch, in [0, 1).
    storage: Additional store of checkpoints, from which another host can
      resume: a path or an fsspec URL. None for no such store.
    evaluation_environment_factory: Function from a seed to an evaluation
      environment with the same specs; None for `environment_factory`.
    evaluation_metrics: Additional metrics of evaluations: a factory of an
      `EpisodeMetric`, such as its class, by log column. Called once per
      environment.
    info: Keys of Gymnasium's `info` to log for training and evaluation
      episodes: the value in the last step of an episode, a number.
    episode_rows: Whether to write a row per training episode to
      `logs/episodes.csv`; the other logs contain means over a second.
    callbacks: Callbacks for events of the run, see `launch.Callback`.
    loggers: Additional loggers of the run's log rows, see `launch.RowLogger`.
    stop_when: Early stopping: a function of the `loggers.Status`, called after
      each evaluation and about once a second. If it returns True or a reason
      (text), the run ends as if all steps had been taken. None for no early
      stopping.
  """

  builder: 'builder_lib.Builder'
  environment_factory: EnvironmentFactory
  max_steps: config_checks.PositiveInt
  directory: str
  agent: str = 'own agent'
  environment: str = 'own environment'
  seed: config_checks.NonNegativeInt = 0
  deterministic: bool = False
  eager: bool = False
  num_actors: config_checks.PositiveInt = 1
  environments_per_actor: config_checks.PositiveInt | None = None
  evaluation_period: config_checks.PositiveInt | None = None
  evaluation_episodes: config_checks.NonNegativeInt = 10
  checkpoint_period_seconds: float = 120.0
  checkpoint_period_learner_steps: config_checks.PositiveInt | None = None
  checkpoint_replay: bool = True
  checkpoints_to_keep: config_checks.PositiveInt = 2
  checkpoint_errors: str = 'warn'
  timeout_seconds: float = 600.0
  stall_seconds: float = 300.0
  max_restarts: config_checks.NonNegativeInt = 3
  on_divergence: str = 'stop'
  initial_from: str | None = None
  record: str | None = None
  demonstrations: Sequence[str] = ()
  demonstration_fraction: float = 0.0
  storage: str | None = None
  evaluation_environment_factory: EnvironmentFactory | None = None
  evaluation_metrics: Mapping[
    str, Callable[[], episode_metrics.EpisodeMetric]
  ] = dataclasses.field(default_factory=dict)
  info: Sequence[str] = ()
  episode_rows: bool = False
  callbacks: Sequence[callbacks_lib.Callback] = ()
  loggers: Sequence[callbacks_lib.RowLogger] = ()
  stop_when: 'Callable[[loggers_lib.Status], bool | str] | None' = None

  def __post_init__(self):
    for field in dataclasses.fields(self):
      value = getattr(self, field.name)
      # JSON has texts and Python's numbers only.
      if isinstance(value, np.generic):
        object.__setattr__(self, field.name, value.item())
      elif isinstance(value, os.PathLike):
        object.__setattr__(self, field.name, os.fspath(value))
    config_checks.check_fields(self)
    for name, what in (
      ('initial_from', 'the directory of a run'),
      ('record', 'a folder'),
      ('storage', 'a path or URL'),
    ):
      is_location = getattr(self, name) != ''
      config_checks.check(self, name, is_location, f'{what}, or left out')
    data = self.demonstrations
    are_folders = not isinstance(data, str) and all(
      isinstance(one, str) and one for one in data
    )
    config_checks.check(self, 'demonstrations', are_folders, 'folders, a list')
    is_share = 0 <= self.demonstration_fraction < 1
    config_checks.check(
      self, 'demonstration_fraction', is_share, 'at least 0 and below 1'
    )
    can_be_eager = not (self.eager and self.deterministic)
    config_checks.check(
      self, 'eager', can_be_eager, 'false in a deterministic run'
    )
    for name in (
      'checkpoint_period_seconds', 'timeout_seconds', 'stall_seconds'
    ):  # fmt: skip
      config_checks.check(self, name, getattr(self, name) > 0, 'positive')
    for name, known in (
      ('checkpoint_errors', ('warn', 'raise')),
      ('on_divergence', choices.DIVERGENCE_ACTIONS),
    ):
      is_known = getattr(self, name) in known
      config_checks.check(self, name, is_known, f'one of {", ".join(known)}')
    callbacks_lib.check(self)

  @property
  def num_environments(self) -> int:
    """Number of training environments, over all actors."""
    return self.num_actors * self.num_environments_per_actor

  @property
  def num_environments_per_actor(self) -> int:
    """Batch size of the environments of one actor."""
    if self.environments_per_actor is not None:
      return self.environments_per_actor
    return self.builder.config.default_environments_per_actor

  def identity(
    self, experience: 'experience_lib.Experience | None' = None
  ) -> dict[str, Any]:
    """Returns the settings that a resumed run must share, as plain values.

    Steps, topology, evaluation and checkpoint settings may change.

    Args:
      experience: Description of the agent's experience on these environments;
        None to leave out its tables.
    """
    fraction = self.demonstration_fraction
    tables = experience.all_tables if experience else ()
    return {
      'agent': self.agent,
      'environment': self.environment,
      'builder': type(self.builder).__name__,
      'seed': self.seed,
      'num_environments': self.num_environments,
      **plain_config(self.builder.config),
      **self.builder.reward_model_identity,
      **{f'table.{table.name}': table.description for table in tables},
      **({'demonstration_fraction': fraction} if fraction else {}),
    }


def plain_config(config: Any) -> dict[str, Any]:
  """Returns the settings of an agent as plain values."""
  settings = settings_lib.plain(dataclasses.asdict(config))
  return {f'{CONFIG}{name}': value for name, value in settings.items()}
