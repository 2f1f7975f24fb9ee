"""One run of an experiment: checked before anything starts, new or resumed."""

import dataclasses
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from repertory.components import (
  checkpointing,
  devices,
  learners,
  replay,
  roads,
  signals,
  specs,
)
from repertory.components import experience as experience_lib
from repertory.components.replay import local
from repertory.launch import experiment as experiment_lib
from repertory.launch import failures
from repertory.launch import hooks as hooks_lib
from repertory.launch.host import printed
from repertory.launch.runs import (
  directories,
  environment_batches,
  preflight,
)


@dataclasses.dataclass(frozen=True)
class Part:
  """What one of several learners has of a run.

  Attributes:
    index: Which of them it is, from 0.
    count: How many there are.
    num_environments: Those of all of them.
  """

  index: int
  count: int
  num_environments: int


@dataclasses.dataclass(frozen=True)
class Session:
  """A run that has been checked; it can be sent to other processes.

  Attributes:
    experiment: What runs.
    spec: What its environment takes and gives.
    experience: The agent's, its queue in bundles if it may be.
    counts: 'steps', 'episodes', 'learner_steps' and 'runs' before this run.
    elapsed_seconds: How long the runs took that this one resumes.
    is_resumed: Whether there is a checkpoint to go on from.
    num_restarts: How often nodes were started again, before this start.
    message: What the user should know of this start.
    restarted_after: Why all nodes were started again, if they were.
    road: The kind of road that carries experience: see `roads.Road.kind`.
    division: How it is divided among nodes, in words.
    initial: What is told of the run whose networks it began with, if any.
    hooks: What the coordinator calls while it goes on.
    wiring: Topology, launcher and their settings as plain values by name, for
      those who look on.
    part: Which part of a run it is; None if it is all of it.
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
  road: str = roads.ReverbRoad.kind
  division: str = ''
  initial: Mapping[str, Any] | None = None
  hooks: hooks_lib.Hooks = hooks_lib.NONE
  wiring: Mapping[str, Any] = dataclasses.field(default_factory=dict)
  part: Part | None = None

  @property
  def log_directory(self) -> str:
    return os.path.join(self.experiment.directory, directories.LOGS)

  @property
  def native_log(self) -> str:
    """The file of what C++ libraries print in the launching process."""
    return os.path.join(self.log_directory, printed.NATIVE)

  @property
  def checkpoint_directory(self) -> str:
    return os.path.join(self.experiment.directory, directories.CHECKPOINTS)

  @property
  def best_directory(self) -> str:
    """Where the policy of the best evaluation is, as a checkpoint."""
    return os.path.join(self.experiment.directory, directories.BEST)

  @property
  def initial_directory(self) -> str:
    """Where there is what it begins with, as a checkpoint."""
    return os.path.join(self.experiment.directory, directories.INITIAL)

  @property
  def storing_directory(self) -> str:
    """Where there are links to what is being stored elsewhere."""
    return os.path.join(self.experiment.directory, directories.STORING)

  @property
  def replay_directory(self) -> str:
    """Where the road, or its server, reads and writes its own checkpoints."""
    return os.path.join(self.checkpoint_directory, '.replay')

  @property
  def divergence(self) -> learners.Divergence:
    """What the learner does about an update that is not finite."""
    experiment = self.experiment
    return learners.Divergence(
      experiment.on_divergence,
      os.path.join(experiment.directory, directories.DIVERGED),
    )

  @property
  def updates_to_come(self) -> int:
    """Learner steps that the run will make, at most."""
    expected = self.experiment.max_steps
    if self.road != roads.DATA:
      expected = preflight.count_updates(self.experiment, self.experience)
    return max(0, expected - self.counts['learner_steps'])

  @property
  def jit_compile(self) -> bool:
    """Whether XLA compiles updates, and policies for which it pays."""
    if self.experiment.eager:
      return False
    config = self.experiment.builder.config
    if config.jit_compile is not None:
      return config.jit_compile
    # However often a deterministic run is stopped, it computes the same. And a
    # program acts, too, and earns back within seconds what it takes to compile.
    if self.experiment.deterministic or self.road == roads.PROGRAM:
      return True
    least = config.steps_until_xla_pays
    return devices.xla_pays(self.updates_to_come, least)

  @property
  def num_environments(self) -> int:
    """Training environments of the run, over all parts of it."""
    if self.part is not None:
      return self.part.num_environments
    return self.experiment.num_environments

  @property
  def steps_per_environment(self) -> int:
    """Steps that each training environment took before this run, on average."""
    return self.counts['steps'] // self.experiment.num_environments

  @property
  def tables(self) -> Sequence[replay.Table]:
    """The experience's; without rate limits if nobody acts."""
    tables = self.experience.all_tables
    if self.road != roads.DATA:
      return tables
    return [dataclasses.replace(table, rate_limit=None) for table in tables]

  def make_local_road(
    self, stop: signals.StopSignal, num_turns: int | None = None
  ) -> roads.LocalRoad:
    """Returns the road over a table of this process.

    Args:
      stop: Ends every wait.
      num_turns: Adders that take turns; None if they do not.
    """
    return roads.LocalRoad(
      self.experience,
      self.experiment.builder,
      seed=self.make_seed(SAMPLING, *self._draws_apart),
      place=local.Place(
        self.experiment.timeout_seconds, stop, warning_seconds=None
      ),
      checkpoint_directory=self.replay_directory,
      num_turns=num_turns,
    )

  @property
  def _draws_apart(self) -> Sequence[int]:
    """What makes draws of a part differ from those of the others."""
    # The first, which may be the only one, draws as one that is all of it.
    return [self.part.index] if self.part and self.part.index else []

  def make_road(self, connection: replay.Connection) -> roads.Road:
    """Returns the road over a replay server, for the ends of a node."""
    return roads.ReverbRoad(
      connection,
      self.experience,
      self.experiment.builder,
      self.replay_directory,
    )

  def takes_replay_of(self, checkpoint: checkpointing.Checkpoint) -> bool:
    """Whether the tables go on with what a checkpoint has of them."""
    return checkpoint.replay_path is not None and not self.explain_omission(
      checkpoint
    )

  def explain_omission(self, checkpoint: checkpointing.Checkpoint) -> str:
    """Says why the tables do not go on with those of a checkpoint.

    A compiled program and others keep them in other ways. A queue may be in
    bundles of another size, which follows from how the environments are divided
    among actors.

    Returns:
      The reason; '' if they go on, or the checkpoint has none.
    """
    if checkpoint.replay_path is None:
      return ''
    road = road_of(checkpoint)
    if road != self.road and roads.PROGRAM in (road, self.road):
      return (
        'a compiled program, as in anakin, keeps them in another way than '
        'other topologies'
      )
    if road != self.road and roads.PARTS in (road, self.road):
      return 'learners that mix, as in gossip, have tables of their own'
    if self.experience.labeled is not None and road != self.road:
      return 'replay and train buffer do not move between process and server'
    expected = self.experience.learned.bundle_sizes
    without = dict.fromkeys(expected, 1)
    if checkpoint.state.get('bundle_sizes', without) != expected:
      return 'its queue has bundles of another size'
    return ''

  def make_checkpointer(self) -> checkpointing.Checkpointer:
    return checkpointing.Checkpointer(
      self.checkpoint_directory, self.experiment.checkpoints_to_keep
    )

  def make_seed(self, *purpose: int) -> int:
    """Returns a seed of its own for a purpose, new in every resumed run."""
    entropy = [self.experiment.seed, self.counts['runs'], *purpose]
    return int(np.random.SeedSequence(entropy).generate_state(1)[0] >> 1)

  def make_lasting_seed(self, *purpose: int) -> int:
    """Returns a seed of its own for a purpose, the same in resumed runs."""
    entropy = [self.experiment.seed, *purpose]
    return int(np.random.SeedSequence(entropy).generate_state(1)[0] >> 1)

  def environment_seeds(self, ids: Sequence[int]) -> list[int]:
    """Returns the seeds of environments, which follow from their ids."""
    return [self.make_seed(_ENVIRONMENTS, i) for i in ids]

  def make_environments(
    self, ids: Sequence[int], life: int = 0, evaluates: bool = False
  ) -> environment_batches.EnvironmentBatch:
    """Makes an environment batch, each environment seeded by its id.

    Args:
      life: How often who asks was started before, in this run.
      evaluates: Whether they are to evaluate in.
    """
    settings = environment_batches.settings_of(self.experiment, evaluates)
    return settings.make(
      environment_batches.renew(self.environment_seeds(ids), life)
    )

  @property
  def identity(self) -> Mapping[str, Any]:
    """The experiment's."""
    return self.experiment.identity(self.experience)

  @property
  def description(self) -> dict[str, Any]:
    """Tells, in plain values, what runs, and what came before."""
    fields = dataclasses.fields(self.experiment)
    names = {field.name for field in fields} - _NOT_TOLD
    return {
      'experiment': {n: getattr(self.experiment, n) for n in sorted(names)},
      'config': self.identity,
      **self.counts,
      'elapsed_seconds': self.elapsed_seconds,
      'message': self.message,
    }


# Of an experiment: what is no plain value, or follows from where it is told, or
# may hold a password.
_NOT_TOLD = {
  'builder',
  'environment_factory',
  'evaluation_environment_factory',
  'evaluation_metrics',
  'observers',
  'loggers',
  'stop_when',
  'directory',
  'storage',
}

# Purposes of seeds.
_ENVIRONMENTS, POLICY, EVALUATION_POLICY, VARIABLES = range(4)
SAMPLING, DEMONSTRATIONS = range(4, 6)
# Not of a run: numbers go on with the count of what is drawn, see
# `nodes.bellman_updater`.
TARGETS = 6


def road_of(checkpoint: checkpointing.Checkpoint) -> str:
  """Returns the kind of road that wrote the tables of a checkpoint."""
  # Before there were several, checkpoints did not tell theirs.
  return checkpoint.state.get('road', roads.ReverbRoad.kind)


def describe_experience(
  experiment: experiment_lib.Experiment, spec: specs.EnvironmentSpec
) -> experience_lib.Experience:
  """Asks the agent for its experience.

  Agents of sequences make a network to tell, so it is asked once.

  Raises:
    ValueError: If the settings do not fit the number of environments.
  """
  experience = experiment.builder.experience(spec, experiment.num_environments)
  fraction = experiment.demonstration_fraction
  return experience.with_demonstrations(fraction) if fraction else experience
