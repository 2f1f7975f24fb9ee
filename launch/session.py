"""One run of an experiment: checked before anything starts, new or resumed."""

import contextlib
import dataclasses
import datetime
import fcntl
import functools
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from repertory.components import checkpointing, replay, specs
from repertory.launch import environment_batches
from repertory.launch import experiment as experiment_lib


@dataclasses.dataclass(frozen=True)
class Session:
  """A run that has been checked; it can be sent to other processes.

  Attributes:
    experiment: What runs.
    spec: Of its environment.
    counts: 'steps', 'episodes', 'learner_steps' and 'runs' before this run.
    elapsed_seconds: Of the runs that this one resumes.
    is_resumed: Whether there is a checkpoint to go on from.
  """

  experiment: experiment_lib.Experiment
  spec: specs.EnvironmentSpec
  counts: Mapping[str, int]
  elapsed_seconds: float
  is_resumed: bool

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
  def steps_per_environment(self) -> int:
    """Steps that each training environment took before this run, on average."""
    return self.counts['steps'] // self.experiment.num_environments

  @functools.cached_property
  def tables(self) -> Sequence[replay.Table]:
    """The agent's; actors write to the first, and the learner samples it."""
    return self.experiment.builder.make_tables(
      self.spec, self.experiment.num_environments
    )

  def make_checkpointer(self) -> checkpointing.Checkpointer:
    return checkpointing.Checkpointer(self.checkpoint_directory)

  def make_seed(self, *purpose: int) -> int:
    """Returns a seed of its own for a purpose, new in every resumed run."""
    entropy = [self.experiment.seed, self.counts['runs'], *purpose]
    return int(np.random.SeedSequence(entropy).generate_state(1)[0] >> 1)

  def environment_seeds(self, ids: Sequence[int]) -> list[int]:
    """Returns the seeds of environments, which follow from their ids."""
    return [self.make_seed(_ENVIRONMENTS, i) for i in ids]

  def make_environments(
    self, ids: Sequence[int]
  ) -> environment_batches.EnvironmentBatch:
    """Makes an environment batch, each environment seeded by its id."""
    settings = environment_settings(self.experiment)
    return settings.make(self.environment_seeds(ids))

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
  """Finds out, without writing anything, whether an experiment can run.

  Returns:
    The environment's spec.

  Raises:
    ValueError: If the network cannot take the environment's observations or
      actions, or the rate limits would make somebody wait for ever.
  """
  environments = environment_settings(experiment).make([experiment.seed])
  try:
    spec = specs.make_environment_spec(environments)
  finally:
    environments.close()
  builder = experiment.builder
  for table in builder.make_tables(spec, experiment.num_environments):
    try:
      table.check(
        builder.batch_size(experiment.num_environments),
        experiment.num_environments * builder.config.max_items_per_step,
      )
    except ValueError as error:
      if '_size' not in str(error).replace('batch_size', ''):
        raise
      raise ValueError(
        f"{error} (The agent's settings: max_size is max_replay_size or "
        'max_queue_size, min_size is min_replay_size.)'
      ) from error
  builder.make_network(spec)
  return spec


@contextlib.contextmanager
def open_session(
  experiment: experiment_lib.Experiment, fresh: bool = False
) -> Iterator[Session]:
  """Checks an experiment, finds its checkpoint and holds its directory.

  Args:
    experiment: What to run.
    fresh: Start over although there is a checkpoint; the old directory is
      moved aside.

  Yields:
    The session.

  Raises:
    ValueError: If the experiment cannot run; nothing was written.
    CheckpointError: If the checkpoint cannot be read or is of another
      experiment; nothing was written.
  """
  spec = check(experiment)
  checkpoint = None
  if not fresh:
    checkpoint = load_checkpoint(experiment.directory)
    if checkpoint is not None:
      check_identity(checkpoint, experiment.identity(spec))
  _check_writable(experiment.directory)
  if fresh:
    _move_aside(experiment.directory)
  try:
    os.makedirs(experiment.directory, exist_ok=True)
  except OSError as error:
    raise ValueError(
      f'directory must be writable, got {experiment.directory}: {error}.'
    ) from error
  state = checkpoint.state if checkpoint else {}
  counts = {'steps': 0, 'episodes': 0, 'learner_steps': 0, 'runs': 0}
  counts.update(state.get('counts', {}))
  with _lock(experiment.directory):
    session = Session(
      experiment=experiment,
      spec=spec,
      counts=counts,
      elapsed_seconds=state.get('elapsed_seconds', 0.0),
      is_resumed=checkpoint is not None,
    )
    checkpointing.place_replay(
      checkpoint.replay_path if checkpoint else None, session.replay_directory
    )
    os.makedirs(session.log_directory, exist_ok=True)
    _ = session.tables  # Now, so that other processes get them with the rest.
    yield session


def load_checkpoint(directory: str) -> checkpointing.Checkpoint | None:
  """Reads the newest checkpoint of an experiment's directory, if any."""
  path = os.path.join(directory, 'checkpoints')
  return checkpointing.Checkpointer(path).load()


def check_identity(
  checkpoint: checkpointing.Checkpoint, identity: Mapping[str, Any]
) -> None:
  """Refuses to go on from a checkpoint of another experiment.

  Raises:
    CheckpointError: Naming every field that differs.
  """
  found = checkpoint.state['experiment']
  differences = [
    f'{name}: {found.get(name, "nothing")} in the checkpoint, '
    f'{identity.get(name, "nothing")} now'
    for name in sorted(found.keys() | identity.keys())
    if found.get(name) != identity.get(name)
  ]
  if differences:
    raise checkpointing.CheckpointError(
      f'Checkpoint {checkpoint.path} is of another experiment: '
      + '; '.join(differences)
      + '. Ask for what the checkpoint has, choose another directory, or start '
      'afresh.'
    )


def _check_writable(directory: str) -> None:
  """Raises ValueError unless the directory can be made and written to."""
  existing = os.path.abspath(directory)
  while not os.path.exists(existing):
    existing = os.path.dirname(existing)
  if not os.path.isdir(existing):
    raise ValueError(
      f'directory must be a folder, got {directory}, where {existing} is a '
      'file.'
    )
  if not os.access(existing, os.W_OK | os.X_OK):
    raise ValueError(
      f'directory must be writable, got {directory}: no permission to write '
      f'in {existing}.'
    )


def _move_aside(directory: str) -> None:
  if not os.path.isdir(directory) or not os.listdir(directory):
    return
  with _lock(directory):
    pass  # Nobody writes to it.
  stamp = datetime.datetime.now().strftime('%Y%m%d-%H%M%S')
  os.rename(directory, f'{os.path.normpath(directory)}.{stamp}')


@contextlib.contextmanager
def _lock(directory: str) -> Iterator[None]:
  """Holds the directory, so that no second run writes to it."""
  with open(os.path.join(directory, '.lock'), 'w') as file:
    try:
      fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
      raise ValueError(
        f'directory must not be in use, but another run writes to {directory}.'
      ) from error
    yield
