"""Where what is lived is recorded, and what that is of; needs no TensorFlow."""

import dataclasses
import os
from typing import TYPE_CHECKING

from repertory import __version__
from repertory.components import recordings, specs
from repertory.environments import previous_action
from repertory.launch.runs import directories

if TYPE_CHECKING:
  from repertory.launch import experiment as experiment_lib


def prepare(
  experiment: 'experiment_lib.Experiment',
  spec: specs.EnvironmentSpec,
  writes: bool = True,
) -> None:
  """Makes the folder of an experiment's recording, if there is to be one.

  Args:
    spec: What the agent takes and gives.
    writes: Whether to make it, or else only to look whether it will do.

  Raises:
    SettingError: If it has recordings of something else, or other files, or
      cannot be written to.
  """
  if experiment.record is not None:
    directories.check_accepts_files(experiment.record, 'record')
    manifest = describe(experiment, spec)
    recordings.prepare(experiment.record, manifest, writes)


def with_absolute_paths(
  experiment: 'experiment_lib.Experiment',
) -> 'experiment_lib.Experiment':
  """Returns the same experiment, for nodes that may be in another folder."""
  record, data = experiment.record, experiment.demonstrations
  return dataclasses.replace(
    experiment,
    record=None if record is None else os.path.abspath(record),
    demonstrations=tuple(map(os.path.abspath, data)),
  )


def describe(
  experiment: 'experiment_lib.Experiment', spec: specs.EnvironmentSpec
) -> recordings.Manifest:
  """Returns what a recording of an experiment's agent is of."""
  return recordings.Manifest.of(
    experiment.agent,
    experiment.environment,
    recorded_spec(experiment, spec),
    __version__,
  )


def recorded_spec(
  experiment: 'experiment_lib.Experiment', spec: specs.EnvironmentSpec
) -> specs.EnvironmentSpec:
  """Returns the spec of what is recorded: what the environments say."""
  if not experiment.builder.observes_previous_action_and_reward:
    return spec
  return spec._replace(observations=previous_action.original(spec.observations))
