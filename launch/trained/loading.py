"""Loading of trained agents from the policy files of checkpoints."""

import dataclasses
import os
import traceback
from collections.abc import Mapping, Sequence
from typing import Any

import tree

from repertory.agents.interface import builder as builder_lib
from repertory.components import interfaces, learners, specs, transports
from repertory.components.checkpoints import checkpointing
from repertory.components.config import settings
from repertory.environments.registry import registry
from repertory.launch.experiments import experiment as experiment_lib
from repertory.launch.experiments import policy_description
from repertory.launch.opening import (
  directories,
  environment_batches,
  resuming,
)
from repertory.launch.opening import session as session_lib
from repertory.launch.platform import watchdog

# Maximum batch size of environments.
BATCH_SIZE = 10


@dataclasses.dataclass(frozen=True)
class Trained:
  """A trained agent.

  Attributes:
    directory: Directory of the run.
    checkpoint: The policy's files, see `Checkpointer.load_policy`.
    identity: Names, seed and settings of the run's experiment.
    builder: Builder of the agent; from a directory alone, without the reward
      model, which acting does not need.
    experiment: The experiment, if the caller passed it.
    spec: Specs of observations, as the agent observes them, actions and
      rewards.
    network: The network with trained variables.
  """

  directory: str
  checkpoint: checkpointing.Checkpoint
  identity: Mapping[str, Any]
  builder: builder_lib.Builder
  experiment: experiment_lib.Experiment | None
  spec: specs.EnvironmentSpec
  network: Any

  @property
  def agent(self) -> str:
    return self.identity['agent']

  @property
  def environment(self) -> str:
    return self.identity['environment']

  @property
  def num_environments(self) -> int:
    """Number of training environments."""
    return self.identity['num_environments']

  @property
  def counts(self) -> Mapping[str, int]:
    """'steps', 'learner_steps' and 'runs' of training."""
    return self.checkpoint.state['counts']

  @property
  def environments(self) -> environment_batches.EnvironmentSettings:
    """Settings of evaluation environments; imports a module in their name."""
    return _settings_of(
      self.experiment, self.builder, self.identity, self.directory
    )

  def make_policy(
    self, num_environments: int, seed: int, evaluation: bool = True
  ) -> interfaces.Policy:
    """Makes a policy of the network, see `builder.Acting`."""
    steps_done = self.counts['steps'] // self.num_environments
    if session_lib.transport_of(self.checkpoint) == transports.OFFLINE:
      # Steps of offline runs are learner steps; exploration is at its end.
      steps_done = 2**30
    acting = builder_lib.Acting(
      self.spec, num_environments, seed, steps_done, evaluation
    )
    return self.builder.make_policy(self.network, acting)

  def make_environments(
    self,
    environments: environment_batches.EnvironmentSettings,
    seeds: Sequence[int],
    spec: specs.EnvironmentSpec,
  ) -> environment_batches.EnvironmentBatch:
    """Makes a batch of environments with the given spec, or raises."""
    batch = _make_environments(environments, seeds, self.environment)
    found = specs.make_environment_spec(batch)
    for what in ('observations', 'actions'):
      expected, got = getattr(spec, what), getattr(found, what)
      if _shapes_of(expected) != _shapes_of(got):
        batch.close()
        raise settings.SettingError(
          'environment',
          f'must have the {what} that the policy was trained on, {expected}; '
          f'got {got}.',
        )
    return batch


def read(
  run: str | os.PathLike[str] | experiment_lib.Experiment | Trained,
  best: bool = False,
  trust: bool = False,
  *,
  agent: str | None = None,
  environment: str | None = None,
) -> Trained:
  """Loads a trained agent, unless `run` is one; see `launch.load_policy`.

  Names of agent and environment given by the caller are trusted.

  Raises:
    ValueError: If there is no checkpoint, or it belongs to another experiment
      or names an untrusted module.
    CheckpointError: If the checkpoint cannot be read.
  """
  if isinstance(run, Trained):
    return run
  experiment = None
  if isinstance(run, experiment_lib.Experiment):
    experiment, directory = run, run.directory
  elif isinstance(run, (str, os.PathLike)):
    directory = os.fspath(run)
  else:
    raise settings.SettingError(
      'run', f'must be the directory of a run, or an experiment, got {run!r}.'
    )
  folder = directories.BEST if best else directories.CHECKPOINTS
  directories.check_folder(directory, folder)
  path = os.path.join(directory, folder)
  try:
    saved = checkpointing.Checkpointer(path).load_policy()
    if saved is None:
      raise directories.absence(directory, best)
    identity = policy_description.check(saved, directory)
    if experiment is None:
      policy_description.check_trusted(
        identity, directory, trust, agent, environment
      )
      builder = policy_description.make_builder(identity, directory)
    else:
      named = dataclasses.replace(saved, state={'experiment': identity})
      resuming.check_identity(named, experiment.identity())
      builder = experiment.builder
  except checkpointing.CheckpointError as error:
    # Without the remedy of starting afresh.
    raise checkpointing.CheckpointError(error.problem) from error
  spec = policy_description.read_spec(saved)
  if spec is None:
    environments = _settings_of(experiment, builder, identity, directory)
    batch = _make_environments(
      environments, [identity['seed']], identity['environment']
    )
    spec = specs.make_environment_spec(batch)
    batch.close()
  network = builder.make_network(spec)
  learners.restore_exported(saved.arrays, 'policy', network.variables)
  return Trained(directory, saved, identity, builder, experiment, spec, network)


def _settings_of(
  experiment: experiment_lib.Experiment | None,
  builder: builder_lib.Builder,
  identity: Mapping[str, Any],
  directory: str,
) -> environment_batches.EnvironmentSettings:
  """Returns the settings of evaluation environments."""
  if experiment is not None:
    return environment_batches.settings_of(experiment, evaluates=True)
  name = identity['environment']
  with policy_description.explained(directory, identity['agent'], name):
    factory = registry.make_factory(name)
  return environment_batches.EnvironmentSettings(
    factory, builder.observes_previous_action_and_reward
  )


def _make_environments(
  environments: environment_batches.EnvironmentSettings,
  seeds: Sequence[int],
  name: str,
) -> environment_batches.EnvironmentBatch:
  """Makes a batch; its own code may raise anything, or hang."""
  try:
    limit = f"environment '{name}' to be made"
    with watchdog.limited(watchdog.START_SECONDS, limit):
      return environments.make(seeds)
  except (ValueError, ImportError, TimeoutError, KeyboardInterrupt):
    raise  # Their messages say what to do.
  except BaseException as error:  # Including SystemExit and StopIteration.
    raise ValueError(
      f"Environment '{name}' cannot be made:\n"
      + ''.join(traceback.format_exception(error))
    ) from error


def _shapes_of(nested_spec: Any) -> list[Any]:
  """Returns path, shape and dtype of each leaf."""
  return [
    (path, spec.shape, spec.dtype)
    for path, spec in tree.flatten_with_path(nested_spec)
  ]
