"""Folder and manifest of a run's recording; needs no TensorFlow."""

import dataclasses
import os
from typing import TYPE_CHECKING

from repertory import __version__
from repertory.components import offline, specs
from repertory.environments.wrappers import previous_action
from repertory.launch.opening import directories

if TYPE_CHECKING:
  from repertory.launch.experiments import experiment as experiment_lib


def prepare(
  experiment: 'experiment_lib.Experiment',
  spec: specs.EnvironmentSpec,
  writes: bool = True,
) -> None:
  """Makes the folder of an experiment's recording, if it has one.

  Args:
    spec: The agent's environment spec.
    writes: Whether to make the folder, or only to check it.

  Raises:
    SettingError: If the folder has other recordings or files, or is not
      writable.
  """
  if experiment.record is not None:
    directories.check_accepts_files(experiment.record, 'record')
    manifest = describe(experiment, spec)
    offline.prepare(experiment.record, manifest, writes)


def with_absolute_paths(
  experiment: 'experiment_lib.Experiment',
) -> 'experiment_lib.Experiment':
  """Returns the experiment with absolute paths, for nodes in other folders."""
  record, data = experiment.record, experiment.demonstrations
  return dataclasses.replace(
    experiment,
    record=None if record is None else os.path.abspath(record),
    demonstrations=tuple(map(os.path.abspath, data)),
  )


def describe(
  experiment: 'experiment_lib.Experiment', spec: specs.EnvironmentSpec
) -> offline.RecordingManifest:
  """Returns the manifest of a recording of an experiment's agent."""
  return offline.RecordingManifest.of(
    experiment.agent,
    experiment.environment,
    recorded_spec(experiment, spec),
    __version__,
  )


def recorded_spec(
  experiment: 'experiment_lib.Experiment', spec: specs.EnvironmentSpec
) -> specs.EnvironmentSpec:
  """Returns the spec of recorded steps: the original environment's."""
  if not experiment.builder.observes_previous_action_and_reward:
    return spec
  return spec._replace(observations=previous_action.original(spec.observations))
