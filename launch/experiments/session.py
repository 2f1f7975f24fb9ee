"""Session: a checked run of an experiment, new or resumed."""

import dataclasses
import os
from collections.abc import Mapping, Sequence
from typing import Any

from repertory.agents.reward_models import reward_model_config
from repertory.components import learners, replay, specs, transports
from repertory.components.checkpoints import checkpointing
from repertory.components.replay import local, served
from repertory.components.runtime import devices, signals
from repertory.components.transports import experience as experience_lib
from repertory.environments.values import argument_checks
from repertory.launch import failures
from repertory.launch.experiments import directories, environment_batches
from repertory.launch.experiments import experiment as experiment_lib


@dataclasses.dataclass(frozen=True)
class LearnerShare:
  """Index of one of `count` learners, and the environments of them all."""

  index: int
  count: int
  num_environments: int


@dataclasses.dataclass(frozen=True)
class Session:
  """A checked run; picklable.

  Attributes:
    experiment: The experiment to run.
    spec: The environment's spec.
    experience: The agent's experience, with a bundled queue if supported.
    counts: 'steps', 'episodes', 'learner_steps' and 'runs' before this run.
    elapsed_seconds: Total duration of the runs that this one resumes.
    is_resumed: Whether the run resumes from a checkpoint.
    num_restarts: Number of restarts of nodes before this start.
    message: Note for the user about this start.
    restarted_after: Failure after which all nodes were restarted, if any.
    transport: Kind of experience transport, see `Transport.kind`.
    sharding: Sharding of the run among nodes, in words.
    initial: Description of the run whose networks this one began with, if any.
    run_layout: Topology, launcher and their settings as plain values by
      name, for callbacks.
    title: Title of the run, as displayed.
    part: The learner's index and share; None for the whole run.
  """

  experiment: experiment_lib.Experiment
  spec: specs.EnvironmentSpec
  experience: experience_lib.Experience
  counts: Mapping[str, int]
  elapsed_seconds: float
  is_resumed: bool
  num_restarts: int = 0
  message: str = ''
  restarted_after: failures.Failure | None = None
  transport: str = transports.REVERB
  sharding: str = ''
  initial: Mapping[str, Any] | None = None
  run_layout: Mapping[str, Any] = dataclasses.field(default_factory=dict)
  title: str = ''
  part: LearnerShare | None = None

  def without_callbacks(self) -> 'Session':
    """Returns the session of nodes other than the coordinator."""
    nothing = {'callbacks': (), 'loggers': (), 'stop_when': None}
    experiment = dataclasses.replace(self.experiment, **nothing)
    return dataclasses.replace(self, experiment=experiment)

  @property
  def log_directory(self) -> str:
    return os.path.join(self.experiment.directory, directories.LOGS)

  @property
  def checkpoint_directory(self) -> str:
    return os.path.join(self.experiment.directory, directories.CHECKPOINTS)

  @property
  def best_directory(self) -> str:
    """Folder of the checkpoint of the best evaluation's policy."""
    return os.path.join(self.experiment.directory, directories.BEST)

  @property
  def initial_directory(self) -> str:
    """Folder of the checkpoint of the initial networks."""
    return os.path.join(self.experiment.directory, directories.INITIAL)

  @property
  def storing_directory(self) -> str:
    """Folder of links to checkpoints that are being uploaded."""
    return os.path.join(self.experiment.directory, directories.STORING)

  @property
  def replay_directory(self) -> str:
    """Folder of the checkpoints of the transport or its replay server."""
    return os.path.join(self.experiment.directory, directories.REPLAY)

  @property
  def divergence(self) -> learners.Divergence:
    """Handling of non-finite updates by the learner."""
    experiment = self.experiment
    return learners.Divergence(
      experiment.on_divergence,
      os.path.join(experiment.directory, directories.DIVERGED),
    )

  @property
  def expected_updates(self) -> int:
    """Expected number of learner steps of the whole run."""
    max_steps = self.experiment.max_steps
    if self.transport == transports.OFFLINE:
      return max_steps
    items = self.experience.items.expected_items(max_steps)
    return self.experience.updates_due(items)

  @property
  def updates_to_come(self) -> int:
    """Maximum number of remaining learner steps."""
    expected = self.experiment.max_steps
    if self.transport != transports.OFFLINE:
      max_items = self.experience.max_items(
        self.experiment.max_steps, self.experiment.num_environments
      )
      expected = self.experience.updates_due(max_items)
    return max(0, expected - self.counts['learner_steps'])

  @property
  def jit_compile(self) -> bool:
    """Whether XLA compiles updates, and policies if that saves time."""
    if self.experiment.eager:
      return False
    config = self.experiment.builder.config
    if config.jit_compile is not None:
      return config.jit_compile
    # A deterministic run must compute the same however often it is resumed. A
    # compiled loop also acts, so compilation pays within seconds.
    if self.experiment.deterministic or self.transport == transports.COMPILED:
      return True
    # With an accelerator always: launching the hundreds of operations of an
    # update takes longer than to run them. This has not been measured.
    is_long = self.updates_to_come >= config.steps_until_xla_pays
    return is_long or devices.has_accelerator()

  @property
  def num_environments(self) -> int:
    """Number of training environments of the whole run."""
    if self.part is not None:
      return self.part.num_environments
    return self.experiment.num_environments

  @property
  def steps_per_environment(self) -> int:
    """Average number of steps per training environment before this run."""
    return self.counts['steps'] // self.experiment.num_environments

  @property
  def tables(self) -> Sequence[replay.TableSpec]:
    """Tables of the experience; without rate limits in offline runs."""
    tables = self.experience.all_tables
    if self.transport != transports.OFFLINE:
      return tables
    changes = {'rate_limit': None, 'priority_exponent': None}
    return [dataclasses.replace(table, **changes) for table in tables]

  def make_in_process_transport(
    self, stop: signals.StopSignal, num_turns: int | None = None
  ) -> transports.InProcessTransport:
    """Returns the transport over a table of this process.

    `num_turns` is the number of adders that take turns, if they do.
    """
    # The first learner, possibly the only one, has the seeds of a whole run.
    apart = [self.part.index] if self.part and self.part.index else []
    return transports.InProcessTransport(
      self.experience,
      self.experiment.builder.make_adder,
      seed=self.make_seed(SAMPLING, *apart),
      place=local.WaitPolicy(self.experiment.timeout_seconds, stop),
      checkpoint_directory=self.replay_directory,
      num_turns=num_turns,
    )

  def connect(
    self, address: str, stop: signals.StopSignal, token: str = ''
  ) -> transports.Transport:
    """Returns the transport over a replay server, for a node.

    Args:
      address: Address of the server.
      stop: Ends all waits.
      token: The run's token.
    """
    waits = self.experiment.timeout_seconds, stop
    if self.transport == transports.REVERB:
      kind = transports.ReverbTransport
      connection: Any = replay.Connection(address, *waits)
    else:
      kind = transports.ServedTransport
      connection = served.ServerConnection(address, *waits, token)
    make_adder = self.experiment.builder.make_adder
    return kind(self.experience, make_adder, connection, self.replay_directory)

  def make_checkpointer(self) -> checkpointing.Checkpointer:
    return checkpointing.Checkpointer(
      self.checkpoint_directory, self.experiment.checkpoints_to_keep
    )

  def make_seed(self, *purpose: int) -> int:
    """Returns the seed of a purpose, which changes in every resumed run."""
    return argument_checks.combine_seeds(
      [self.experiment.seed, self.counts['runs'], *purpose]
    )

  def environment_seeds(self, ids: Sequence[int]) -> list[int]:
    """Returns the seeds of environments, derived from their ids."""
    return [self.make_seed(ENVIRONMENTS, i) for i in ids]

  def make_environments(
    self, ids: Sequence[int], generation: int = 0, evaluates: bool = False
  ) -> environment_batches.EnvironmentBatch:
    """Makes an environment batch, each environment seeded by its id.

    `generation` is the number of earlier starts of the calling node in the run.
    """
    settings = environment_batches.settings_of(self.experiment, evaluates)
    return settings.make_environments(
      environment_batches.renew(self.environment_seeds(ids), generation)
    )

  def restarted(
    self, num_restarts: int, failure: failures.Failure
  ) -> 'Session | None':
    """Returns the session of a restart of all nodes, which have ended.

    It resumes from the newest checkpoint; None without one. `num_restarts`
    includes this restart.
    """
    checkpoint = directories.load_checkpoint(self.experiment.directory)
    if checkpoint is None:
      return None
    omission = explain_omission(checkpoint, self.transport, self.experience)
    checkpointing.prepare_replay(
      None if omission else checkpoint.replay_path, self.replay_directory
    )
    return dataclasses.replace(
      self,
      counts=checkpoint.state['counts'],
      elapsed_seconds=checkpoint.state['elapsed_seconds'],
      is_resumed=True,
      num_restarts=num_restarts,
      restarted_after=failure,
      message=(
        f'{failure.node} was lost; all started again from checkpoint '
        f'{os.path.basename(checkpoint.path)}{omission}'
      ),
    )

  @property
  def identity(self) -> Mapping[str, Any]:
    """Identity of the experiment."""
    return self.experiment.identity(self.experience)

  @property
  def description(self) -> dict[str, Any]:
    """Settings and initial counts of the run, as plain values."""
    fields = dataclasses.fields(self.experiment)
    names = {field.name for field in fields} - _NOT_DESCRIBED
    return {
      'experiment': {n: getattr(self.experiment, n) for n in sorted(names)},
      'config': self.identity,
      **self.counts,
      'elapsed_seconds': self.elapsed_seconds,
      'message': self.message,
    }


# Fields of an experiment that are no plain values, are known from the location
# of the log, or may hold a password.
_NOT_DESCRIBED = {
  'builder',
  'environment_factory',
  'evaluation_environment_factory',
  'evaluation_metrics',
  'callbacks',
  'loggers',
  'stop_when',
  'directory',
  'storage',
}

# Purposes of seeds.
ENVIRONMENTS, POLICY, EVALUATION_POLICY, VARIABLES = range(4)
SAMPLING, DEMONSTRATIONS = range(4, 6)
# Not specific to a run: continues with the count of samples, see
# `nodes.bellman_updater`.
TARGETS = 6


# Settings of agents that older checkpoints lack, and their values then.
_ADDED = {
  'normalize_observations': False,
  'normalize_rewards': False,
  'hindsight_goals': 0,
  'hindsight_strategy': 'future',
  'noise_correlation': 0.0,
}


def check_identity(
  checkpoint: checkpointing.Checkpoint, identity: Mapping[str, Any]
) -> None:
  """Raises CheckpointError for one of another experiment, with differences."""
  found = reward_model_config.with_present_names(checkpoint.state['experiment'])
  for name, value in _ADDED.items():
    if (key := f'{experiment_lib.CONFIG}{name}') in identity:
      found.setdefault(key, value)
  names = [
    name
    for name in sorted(found.keys() | identity.keys())
    if found.get(name) != identity.get(name)
  ]
  if 'builder' in names:  # Its settings differ, too; so do its tables.
    names = [name for name in names if '.' not in name]
  names = [n for n in names if not n.startswith('table.')] or names
  if not names:
    return
  differences = [
    f'{name}: {found.get(name, "nothing")} in the checkpoint, '
    f'{identity.get(name, "nothing")} now'
    for name in names
  ]
  raise checkpointing.CheckpointError(
    f'Checkpoint {checkpoint.path} is of another experiment: '
    f'{"; ".join(differences)}. Use the settings of the checkpoint, or choose '
    'another directory.',
    fresh=True,
  )


def _format_of(kind: str) -> str:
  """Returns the first kind of transport whose snapshots have the format."""
  return transports.IN_PROCESS if kind == transports.SERVED else kind


def explain_omission(
  checkpoint: checkpointing.Checkpoint,
  transport: str,
  experience: experience_lib.Experience,
) -> str:
  """Explains why a checkpoint's tables cannot be restored; '' if they can.

  Args:
    transport: Kind of the run's transport.
    experience: Description of its tables.
  """
  why = ''
  if checkpoint.replay_path is None:
    return why
  if _format_of(transport_of(checkpoint)) != _format_of(transport):
    why = 'those of the checkpoint are in the format of another replay'
  else:
    expected = experience.learned.bundle_sizes
    without = dict.fromkeys(expected, 1)
    if checkpoint.state.get('bundle_sizes', without) != expected:
      why = 'its queue has bundles of another size'
  return why and f', but with empty replay tables: {why}'


def transport_of(checkpoint: checkpointing.Checkpoint) -> str:
  """Returns the kind of transport that wrote the tables of a checkpoint."""
  # Older checkpoints call it 'road'; the oldest, all Reverb's, do not name it.
  kind = checkpoint.state.get('transport', checkpoint.state.get('road'))
  return kind or transports.REVERB
