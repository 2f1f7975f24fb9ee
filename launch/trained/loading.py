"""Loading of trained agents from checkpoints."""

import dataclasses
import os
from typing import Any

from repertory.components import learners, specs
from repertory.components.checkpoints import checkpointing
from repertory.components.config import settings
from repertory.components.transports import experience as experience_lib
from repertory.launch.experiments import (
  directories,
  environment_batches,
  naming,
)
from repertory.launch.experiments import experiment as experiment_lib
from repertory.launch.experiments import session as session_lib


@dataclasses.dataclass(frozen=True)
class Trained:
  """A trained agent.

  Attributes:
    experiment: The experiment of the run.
    spec: Specs of observations, actions and rewards.
    experience: Description of the agent's experience.
    network: The network with trained variables.
    checkpoint: The checkpoint it was loaded from.
  """

  experiment: experiment_lib.Experiment
  spec: specs.EnvironmentSpec
  experience: experience_lib.Experience
  network: Any
  checkpoint: checkpointing.Checkpoint

  @property
  def learner_steps(self) -> int:
    """Learner steps of training."""
    return self.checkpoint.state['counts']['learner_steps']

  @property
  def steps(self) -> int:
    """Environment steps of training."""
    return self.checkpoint.state['counts']['steps']


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
  try:
    if isinstance(run, experiment_lib.Experiment):
      checkpoint, experiment = _load(run.directory, best), run
    elif isinstance(run, (str, os.PathLike)):
      directory = os.fspath(run)
      checkpoint = _load(directory, best)
      experiment = naming.from_identity(
        checkpoint.state.get('experiment'),
        directory,
        trust=trust,
        agent=agent,
        environment=environment,
      )
    else:
      raise settings.SettingError(
        'run', f'must be the directory of a run, or an experiment, got {run!r}.'
      )
    spec = environment_batches.find_spec(experiment)
    experience = experiment.builder.experience(
      spec, experiment.num_environments
    )
    session_lib.check_identity(checkpoint, experiment.identity(experience))
    network = experiment.builder.make_network(spec)
    learners.restore_exported(checkpoint.arrays, 'policy', network.variables)
  except checkpointing.CheckpointError as error:
    raise checkpointing.CheckpointError(error.problem) from error
  return Trained(experiment, spec, experience, network, checkpoint)


def _load(directory: str, best: bool) -> checkpointing.Checkpoint:
  checkpoint = directories.load_checkpoint(
    directory, check_replay=False, best=best
  )
  if checkpoint is None:
    raise directories.absence(directory, best)
  return checkpoint
