"""What to run, whatever the topology."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import dm_env

from repertory.agents import config_checks
from repertory.components import choices, episode_metrics
from repertory.components import settings as settings_lib
from repertory.components.settings import SettingError
from repertory.launch import hooks as hooks_lib

if TYPE_CHECKING:
  from repertory.agents import builder as builder_lib
  from repertory.components import experience as experience_lib
  from repertory.components import loggers as loggers_lib

EnvironmentFactory = Callable[[int], dm_env.Environment]

# What identities have before the names of an agent's settings.
CONFIG = 'config.'

CHECKPOINT_ERRORS = ('warn', 'raise')


@dataclasses.dataclass(frozen=True)
class Experiment:
  """An agent, an environment, and how long and from which seed.

  Equal experiments, topologies aside, mean the same algorithm: the same ratio
  of acting to learning, the same exploration, the same targets.

  Attributes:
    builder: Makes the agent's parts.
    environment_factory: Maps a seed to an environment. For runs in processes
      it must be picklable.
    max_steps: Environment steps at which the run ends, over all actors and
      including those of a run it resumes. The last step of an environment
      batch may go beyond it by less than that batch.
    directory: Where logs and checkpoints go.
    agent: Name of the agent, for the display and the checkpoint.
    environment: Name of the environment, likewise.
    seed: Seeds all random numbers that can be seeded.
    deterministic: Whether all that is learned follows from the seed, to the
      last bit, on the same machine and number of devices. Not every topology
      can do that; environments are stepped one by one, and must follow from
      their seeds.
    eager: Whether policy and update run eagerly, so that `breakpoint()` and
      `print` show numbers. Only in topology `single`, and not in deterministic
      runs. `tf.config.run_functions_eagerly(True)` sets it, too.
    num_actors: Nodes that act in a topology with several; in `single` one
      actor drives the environments of all of them.
    environments_per_actor: Environments that one actor steps together; None
      for as many as the agent's config advises, which is what
      `num_environments_per_actor` then says.
    evaluation_period: Environment steps between evaluations; None for a tenth
      of `max_steps`. One more comes at the end.
    evaluation_episodes: Episodes of an evaluation; 0 for no evaluations.
    checkpoint_period_seconds: Time between checkpoints. One more comes at the
      end, also of a run that was interrupted.
    checkpoint_period_learner_steps: Updates after which a checkpoint comes
      even if that time is not over; None for time alone.
    checkpoint_replay: Whether checkpoints hold the replay tables. Without, a
      resumed run starts with empty ones.
    checkpoints_to_keep: The newest so many are kept.
    checkpoint_errors: What a checkpoint that cannot be written does, perhaps
      because the disk is full: 'warn' keeps the last one and tries again after
      the period, 'raise' ends the run.
    timeout_seconds: After how long a wait on another node is an error.
    stall_seconds: After how long without an environment step, an update or an
      evaluation the run is ended, with a report on why; also the longest that
      a step or reset of an environment may take.
    max_restarts: How often within ten minutes a node's process may be started
      again when it has ended; of the learner, the replay server and the
      coordinator all nodes' are, from the last checkpoint. 0 for never.
    on_divergence: Handling of a learner step whose metrics, priorities or
      running statistics are not finite: 'stop' ends the run and saves the
      batch; 'skip' undoes the step and continues, unless a hundred before it
      were skipped in a row.
    initial_from: Directory of another run, with whose newest networks, and
      nothing else of it, a new run begins; None for new ones. A run that is
      resumed keeps its own.
    record: Folder to write all that is lived in training to, as episodes to
      learn from later, see `topologies.offline`; None for nowhere.
    demonstrations: Folders of recordings, or of data sets of Minari, of which
      every batch has a share; see docs/offline.md.
    demonstration_fraction: That share, below 1; 0 for none.
    storage: Where checkpoints are kept besides, for another host to go on
      from: a path, or a URL that fsspec knows. None for nowhere.
    evaluation_environment_factory: Maps a seed to an environment of the same
      specs, to evaluate in; None to evaluate in those of
      `environment_factory`.
    evaluation_metrics: What evaluations record besides returns: by the name of
      its column, what makes an `EpisodeMetric` for each environment, such as
      its class.
    info: Names of entries of Gymnasium's `info` to log for episodes of training
      and evaluations: the value of each in the last step of an episode, which
      must be a number.
    episode_rows: Whether `logs/episodes.csv` gets a row for each training
      episode; the other logs have means over a second.
    observers: Are called with what happens in the run, see `launch.Observer`.
    loggers: Take the rows of the run's logs, too, see `launch.RowLogger`.
    stop_when: Called with the `loggers.Status`, after each evaluation and about
      once a second; if it returns true or the reason, as text, acting ends as
      if all steps had been taken. None to take them all.
  """

  builder: 'builder_lib.Builder'
  environment_factory: EnvironmentFactory
  max_steps: int
  directory: str
  agent: str = 'own agent'
  environment: str = 'own environment'
  seed: int = 0
  deterministic: bool = False
  eager: bool = False
  num_actors: int = 1
  environments_per_actor: int | None = None
  evaluation_period: int | None = None
  evaluation_episodes: int = 10
  checkpoint_period_seconds: float = 120.0
  checkpoint_period_learner_steps: int | None = None
  checkpoint_replay: bool = True
  checkpoints_to_keep: int = 2
  checkpoint_errors: str = 'warn'
  timeout_seconds: float = 600.0
  stall_seconds: float = 300.0
  max_restarts: int = 3
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
  observers: Sequence[hooks_lib.Observer] = ()
  loggers: Sequence[hooks_lib.RowLogger] = ()
  stop_when: 'Callable[[loggers_lib.Status], bool | str] | None' = None

  def __post_init__(self):
    for field, minimum in (
      ('max_steps', 1),
      ('seed', 0),
      ('num_actors', 1),
      ('evaluation_episodes', 0),
      ('max_restarts', 0),
      ('checkpoints_to_keep', 1),
    ):
      value = getattr(self, field)
      config_checks.check(self, field, _is_integer(value), 'an integer')
      config_checks.check_at_least(self, minimum, field)
    for field, what in (
      ('initial_from', 'the directory of a run'),
      ('record', 'a folder'),
      ('storage', 'a path or URL'),
    ):
      value = getattr(self, field)
      is_place = value is None or (isinstance(value, str) and bool(value))
      config_checks.check(self, field, is_place, f'{what}, or left out')
    data = self.demonstrations
    are_folders = not isinstance(data, str) and all(
      isinstance(one, str) and one for one in data
    )
    config_checks.check(self, 'demonstrations', are_folders, 'folders, a list')
    is_share = 0 <= self.demonstration_fraction < 1
    config_checks.check(
      self, 'demonstration_fraction', is_share, 'at least 0 and below 1'
    )
    self._check_switches()
    for field in (
      'checkpoint_period_seconds',
      'timeout_seconds',
      'stall_seconds',
    ):
      config_checks.check(self, field, getattr(self, field) > 0, 'positive')
    is_number = self.environments_per_actor is None or _is_integer(
      self.environments_per_actor
    )
    config_checks.check(
      self, 'environments_per_actor', is_number, 'an integer or None'
    )
    config_checks.check_at_least(
      self,
      1,
      'environments_per_actor',
      'evaluation_period',
      'checkpoint_period_learner_steps',
    )
    for field, known in (
      ('checkpoint_errors', CHECKPOINT_ERRORS),
      ('on_divergence', choices.DIVERGENCE_ACTIONS),
    ):
      value = getattr(self, field)
      if value not in known:
        raise SettingError(
          field, f'must be one of {", ".join(known)}; got {value!r}.'
        )
    hooks_lib.check(self)

  def _check_switches(self) -> None:
    for field in ('deterministic', 'eager'):
      is_bool = isinstance(getattr(self, field), bool)
      config_checks.check(self, field, is_bool, 'true or false')
    can_be_eager = not (self.eager and self.deterministic)
    config_checks.check(
      self, 'eager', can_be_eager, 'false in a deterministic run'
    )

  @property
  def num_environments(self) -> int:
    """Training environments, over all actors."""
    return self.num_actors * self.num_environments_per_actor

  @property
  def num_environments_per_actor(self) -> int:
    """Environments that one actor steps together, whoever said how many."""
    if self.environments_per_actor is not None:
      return self.environments_per_actor
    return self.builder.config.default_environments_per_actor

  def identity(self, experience: 'experience_lib.Experience') -> dict[str, Any]:
    """Returns what must be the same for a run to be resumed, as plain values.

    Steps, topology, evaluation and checkpoint settings may change.

    Args:
      experience: The builder's, for these environments.
    """
    fraction = self.demonstration_fraction
    return {
      'agent': self.agent,
      'environment': self.environment,
      'builder': type(self.builder).__name__,
      'seed': self.seed,
      'num_environments': self.num_environments,
      **plain_config(self.builder.config),
      **self.builder.wrapping,
      **{
        f'table.{table.name}': table.description
        for table in experience.all_tables
      },
      **({'demonstration_fraction': fraction} if fraction else {}),
    }


def _is_integer(value: Any) -> bool:
  return isinstance(value, int) and not isinstance(value, bool)


def plain_config(config: Any) -> dict[str, Any]:
  """Returns the settings of an agent as plain values."""
  settings = settings_lib.plain(dataclasses.asdict(config))
  return {f'{CONFIG}{name}': value for name, value in settings.items()}
