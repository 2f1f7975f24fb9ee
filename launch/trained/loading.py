"""Loading of trained agents from the policy files of checkpoints."""

import dataclasses
import os
from collections.abc import Mapping, Sequence
from typing import Any

from repertory.agents.interface import builder as builder_lib
from repertory.components import learners, specs, transports
from repertory.components.checkpoints import checkpointing
from repertory.components.config import settings
from repertory.environments.registry import registry
from repertory.environments.rendering import rendering
from repertory.environments.wrappers import previous_action
from repertory.launch.experiments import (
  directories,
  environment_batches,
  policy_description,
)
from repertory.launch.experiments import experiment as experiment_lib
from repertory.launch.experiments import session as session_lib

# Maximum batch size of environments.
BATCH_SIZE = 10


class Trained:
  """A trained agent.

  Attributes:
    directory: Directory of the run.
    checkpoint: The policy's files, see `Checkpointer.load_policy`.
    identity: Names, seed and settings of the run's experiment.
    builder: Builder of the agent; from a directory alone, without the reward
      model, which acting does not need.
    experiment: The experiment, if the caller passed it.
    agent: Name of the agent.
    environment: Name of the environment.
    counts: 'steps', 'learner_steps' and 'runs' of training.
    num_environments: Number of training environments.
    spec: Specs of the environment, as the agent observes it.
    original_spec: Specs of the environment, without the previous action and
      reward, which agents may observe besides.
    network: The network with trained variables.
  """

  def __init__(
    self,
    directory: str,
    checkpoint: checkpointing.Checkpoint,
    identity: Mapping[str, Any],
    builder: builder_lib.Builder,
    experiment: experiment_lib.Experiment | None,
  ):
    """Makes the network and restores its variables; see `read`."""
    self.directory, self.checkpoint = directory, checkpoint
    self.identity, self.builder = identity, builder
    self.experiment = experiment
    self.agent, self.environment = identity['agent'], identity['environment']
    self.counts: Mapping[str, int] = checkpoint.state['counts']
    self.num_environments: int = identity['num_environments']
    spec = policy_description.read_spec(checkpoint, builder)
    if spec is None:
      spec = environment_batches.read_spec(
        f"environment '{self.environment}'",
        self._environments,
        identity['seed'],
      )
    self.spec = self.original_spec = spec
    if builder.observes_previous_action_and_reward:
      observations = previous_action.original(spec.observations)
      self.original_spec = spec._replace(observations=observations)
    self.network: Any = builder.make_network(spec)
    variables = self.network.variables
    try:
      learners.restore_exported(checkpoint.arrays, 'policy', variables)
    except ValueError as error:
      raise checkpointing.CheckpointError(
        f'Checkpoint {checkpoint.path} cannot be read: {error}.'
      ) from error

  @property
  def steps_per_environment(self) -> int:
    """Average number of steps of training environments, for exploration."""
    if session_lib.transport_of(self.checkpoint) == transports.OFFLINE:
      # Steps of offline runs are learner steps; exploration is at its end.
      return 2**30
    return self.counts['steps'] // self.num_environments

  def make_environments(
    self, seeds: Sequence[int], renders: bool = False
  ) -> environment_batches.EnvironmentBatch:
    """Makes a batch of evaluation environments of `original_spec`, or raises.

    A module in their name is imported.
    """
    environments = dataclasses.replace(
      self._environments, observes_previous_action_and_reward=False
    )
    if renders:
      factory = rendering.enable(environments.factory)
      environments = dataclasses.replace(environments, factory=factory)
    # Its code may raise anything, or hang.
    with environment_batches.making(f"environment '{self.environment}'"):
      batch = environments.make_environments(seeds)
    try:
      found = specs.make_environment_spec(batch)
      setting = 'environment_factory'
      environment_batches.compare(setting, self.original_spec, found)
    except ValueError:
      batch.close()
      raise
    return batch

  @property
  def _environments(self) -> environment_batches.EnvironmentSettings:
    """Settings of evaluation environments."""
    if self.experiment is not None:
      return environment_batches.settings_of(self.experiment, evaluates=True)
    with policy_description.explained(self.directory, self.identity):
      factory = registry.make_factory(self.environment)
    return environment_batches.EnvironmentSettings(
      factory, self.builder.observes_previous_action_and_reward
    )


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
  checkpoints = directories.checkpoints_in(directory, best)
  try:
    saved = checkpoints.load_policy()
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
      session_lib.check_identity(named, experiment.identity())
      builder = experiment.builder
  except checkpointing.CheckpointError as error:
    # Without the remedy of starting afresh.
    raise checkpointing.CheckpointError(error.problem) from error
  return Trained(directory, saved, identity, builder, experiment)
