"""One run of an experiment: checked before anything starts, new or resumed."""

import contextlib
import dataclasses
import functools
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from repertory.agents import registry as agents_registry
from repertory.components import checkpointing, learners, replay, specs
from repertory.launch import experiment as experiment_lib
from repertory.launch import failures
from repertory.launch.runs import directories, environment_batches, preflight


@dataclasses.dataclass(frozen=True)
class Session:
  """A run that has been checked; it can be sent to other processes.

  Attributes:
    experiment: What runs.
    spec: Of its environment.
    counts: 'steps', 'episodes', 'learner_steps' and 'runs' before this run.
    elapsed_seconds: Of the runs that this one resumes.
    is_resumed: Whether there is a checkpoint to go on from.
    num_restarts: How often nodes were started again, before this start.
    message: What the user should know of this start.
    restarted_after: Why all nodes were started again, if they were.
    num_lanes: Parts into which each actor divides its environments.
  """

  experiment: experiment_lib.Experiment
  spec: specs.EnvironmentSpec
  counts: Mapping[str, int]
  elapsed_seconds: float
  is_resumed: bool
  num_restarts: int = 0
  message: str = ''
  restarted_after: failures.Failure | None = None
  num_lanes: int = 1

  @property
  def log_directory(self) -> str:
    return os.path.join(self.experiment.directory, 'logs')

  @property
  def checkpoint_directory(self) -> str:
    return os.path.join(self.experiment.directory, 'checkpoints')

  @property
  def replay_directory(self) -> str:
    """Where the replay server reads and writes its own checkpoints."""
    return os.path.join(self.checkpoint_directory, '.replay')

  @property
  def divergence(self) -> learners.Divergence:
    """What the learner does about an update that is not finite."""
    experiment = self.experiment
    return learners.Divergence(
      experiment.on_divergence,
      os.path.join(experiment.directory, 'diverged'),
    )

  @property
  def steps_per_environment(self) -> int:
    """Steps that each training environment took before this run, on average."""
    return self.counts['steps'] // self.experiment.num_environments

  @functools.cached_property
  def tables(self) -> Sequence[replay.Table]:
    """The agent's; actors write to the first, and the learner samples it."""
    experiment = self.experiment
    builder, num_environments = experiment.builder, experiment.num_environments
    table, *others = builder.make_tables(self.spec, num_environments)
    num_slots = math.gcd(*self.lane_sizes)
    size = builder.bundle_size(num_slots, num_environments)
    if table.is_queue:
      table = table.bundled(size)
    return [table, *others]

  @property
  def lane_sizes(self) -> list[int]:
    """Environments of each lane of an actor."""
    ids = range(self.experiment.environments_per_actor)
    return [len(ids[lane :: self.num_lanes]) for lane in range(self.num_lanes)]

  @property
  def bundle_sizes(self) -> dict[str, int]:
    """Of the tables, by name."""
    return {table.name: table.bundle_size for table in self.tables}

  def takes_replay_of(self, checkpoint: checkpointing.Checkpoint) -> bool:
    """Whether the tables go on with what a checkpoint has of them.

    Not if it has nothing, or holds a queue in bundles of another size: those
    follow from how the environments are divided among actors.
    """
    without = dict.fromkeys(self.bundle_sizes, 1)
    sizes = checkpoint.state.get('bundle_sizes', without)
    return checkpoint.replay_path is not None and sizes == self.bundle_sizes

  def make_checkpointer(self) -> checkpointing.Checkpointer:
    return checkpointing.Checkpointer(
      self.checkpoint_directory, self.experiment.checkpoints_to_keep
    )

  def make_seed(self, *purpose: int) -> int:
    """Returns a seed of its own for a purpose, new in every resumed run."""
    entropy = [self.experiment.seed, self.counts['runs'], *purpose]
    return int(np.random.SeedSequence(entropy).generate_state(1)[0] >> 1)

  def environment_seeds(self, ids: Sequence[int]) -> list[int]:
    """Returns the seeds of environments, which follow from their ids."""
    return [self.make_seed(_ENVIRONMENTS, i) for i in ids]

  def make_environments(
    self, ids: Sequence[int], life: int = 0
  ) -> environment_batches.EnvironmentBatch:
    """Makes an environment batch, each environment seeded by its id.

    Args:
      ids: Of the environments.
      life: How often who asks was started before, in this run.
    """
    settings = environment_settings(self.experiment)
    return settings.make(
      environment_batches.renew(self.environment_seeds(ids), life)
    )

  def identity(self) -> dict[str, Any]:
    return self.experiment.identity(self.spec)


# Purposes of seeds.
_ENVIRONMENTS, POLICY, EVALUATION_POLICY, VARIABLES = range(4)


def environment_settings(
  experiment: experiment_lib.Experiment,
) -> environment_batches.EnvironmentSettings:
  """Returns how the experiment's environments are made."""
  return environment_batches.EnvironmentSettings(
    experiment.environment_factory,
    experiment.builder.observes_previous_action_and_reward,
  )


def check(experiment: experiment_lib.Experiment) -> specs.EnvironmentSpec:
  """Finds out whether the agent fits the environment; writes nothing.

  Whether the experiment can also be trained, `preflight.check` tells.

  Returns:
    The environment's spec.

  Raises:
    ValueError: If the network cannot take the environment's observations or
      actions.
  """
  environments = environment_settings(experiment).make([experiment.seed])
  try:
    spec = specs.make_environment_spec(environments)
  finally:
    environments.close()
  try:
    experiment.builder.make_network(spec)
  except ValueError as error:
    fitting = ', '.join(agents_registry.fitting(spec)) or 'none'
    raise ValueError(
      f"Agent '{experiment.agent}' does not fit environment "
      f"'{experiment.environment}': {error} Agents of the registry that fit, "
      f'with their defaults: {fitting}.'
    ) from error
  return spec


@contextlib.contextmanager
def open_session(
  experiment: experiment_lib.Experiment, fresh: bool = False, num_lanes: int = 1
) -> Iterator[Session]:
  """Checks an experiment, finds its checkpoint and holds its directory.

  Args:
    experiment: What to run.
    fresh: Start over although there is a checkpoint; the old directory is
      moved aside.
    num_lanes: Parts into which each actor divides its environments.

  Yields:
    The session.

  Raises:
    ValueError: If the experiment cannot run, or another run has the directory;
      nothing was written.
    CheckpointError: If the checkpoint cannot be read or is of another
      experiment; nothing was written.
  """
  spec = check(experiment)
  warning = preflight.check(experiment, spec)
  directory = experiment.directory
  directories.check_writable(directory)
  with contextlib.ExitStack() as held:
    # First, so that what is read next is nobody else's to change.
    held.enter_context(directories.hold(directory))
    if fresh and directories.move_aside(directory):
      held.enter_context(directories.hold(directory))
    checkpoint = load_checkpoint(directory)
    if checkpoint is not None:
      check_identity(checkpoint, experiment.identity(spec))
    state = checkpoint.state if checkpoint else {}
    counts = {'steps': 0, 'episodes': 0, 'learner_steps': 0, 'runs': 0}
    counts.update(state.get('counts', {}))
    session = Session(
      experiment=experiment,
      spec=spec,
      counts=counts,
      elapsed_seconds=state.get('elapsed_seconds', 0.0),
      is_resumed=checkpoint is not None,
      num_lanes=num_lanes,
    )
    described = _describe_start(checkpoint, session)
    session = dataclasses.replace(
      session, message=' '.join(filter(None, [described, warning]))
    )
    session.make_checkpointer().remove_unfinished()
    _place_replay(checkpoint, session)
    os.makedirs(session.log_directory, exist_ok=True)
    _ = session.tables  # Now, so that other processes get them with the rest.
    yield session


def resume(
  session: Session, num_restarts: int, failure: failures.Failure
) -> Session | None:
  """Goes back to the newest checkpoint of a run whose nodes have ended.

  Args:
    session: Of the run; its directory is still held.
    num_restarts: With this one.
    failure: Why.

  Returns:
    The session to go on with; None if there is no checkpoint.
  """
  checkpoint = load_checkpoint(session.experiment.directory)
  if checkpoint is None:
    return None
  _place_replay(checkpoint, session)
  name = os.path.basename(checkpoint.path)
  resumed = dataclasses.replace(
    session,
    counts=checkpoint.state['counts'],
    elapsed_seconds=checkpoint.state['elapsed_seconds'],
    is_resumed=True,
    num_restarts=num_restarts,
    restarted_after=failure,
    message=(
      f'{failure.node} was lost; all started again from checkpoint {name}'
      f'{_describe_omission(checkpoint, session)}'
    ),
  )
  _ = resumed.tables
  return resumed


def load_checkpoint(
  directory: str, check_replay: bool = True
) -> checkpointing.Checkpoint | None:
  """Reads the newest checkpoint of an experiment's directory, if any.

  Args:
    directory: Of the experiment.
    check_replay: Whether to compare the checksums of replay, too.
  """
  path = os.path.join(directory, 'checkpoints')
  return checkpointing.Checkpointer(path).load(check_replay)


def _place_replay(
  checkpoint: checkpointing.Checkpoint | None, session: Session
) -> None:
  """Lets the replay server take up what a checkpoint has for it."""
  path = None
  if checkpoint is not None and session.takes_replay_of(checkpoint):
    path = checkpoint.replay_path
  checkpointing.place_replay(path, session.replay_directory)


def _describe_omission(
  checkpoint: checkpointing.Checkpoint, session: Session
) -> str:
  """Says of a checkpoint with replay if that is not taken up; else ''."""
  if checkpoint.replay_path is None or session.takes_replay_of(checkpoint):
    return ''
  return ', but with empty replay tables: its queue has bundles of another size'


def _describe_start(
  checkpoint: checkpointing.Checkpoint | None, session: Session
) -> str:
  if checkpoint is None:
    return ''
  experiment = session.experiment
  name = os.path.basename(checkpoint.path)
  if checkpoint.state['counts']['steps'] >= experiment.max_steps:
    return (
      f'resumed from checkpoint {name}, by which all {experiment.max_steps} '
      'steps were taken already'
    )
  if checkpoint.replay_path is None:
    return f'resumed from checkpoint {name}, which has no replay: that is empty'
  return (
    f'resumed from checkpoint {name}{_describe_omission(checkpoint, session)}'
  )


def check_identity(
  checkpoint: checkpointing.Checkpoint, identity: Mapping[str, Any]
) -> None:
  """Refuses to go on from a checkpoint of another experiment.

  Raises:
    CheckpointError: Naming every field that differs; of another agent not the
      settings and tables, which are others anyway.
  """
  found = checkpoint.state['experiment']
  is_other_agent = found.get('builder') != identity.get('builder')
  differences = [
    f'{name}: {found.get(name, "nothing")} in the checkpoint, '
    f'{identity.get(name, "nothing")} now'
    for name in sorted(found.keys() | identity.keys())
    if found.get(name) != identity.get(name)
    and not (is_other_agent and '.' in name)
  ]
  if differences:
    raise checkpointing.CheckpointError(
      f'Checkpoint {checkpoint.path} is of another experiment: '
      + '; '.join(differences)
      + '. Ask for what the checkpoint has, choose another directory, or start '
      'afresh (fresh=True).'
    )
