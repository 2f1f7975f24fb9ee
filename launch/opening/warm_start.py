"""Warm starts: new runs that begin with the networks of another run."""

import os
import shutil
from collections.abc import Mapping
from typing import Any

import numpy as np

from repertory.components import learners, specs
from repertory.components.checkpoints import checkpointing
from repertory.components.config.settings import SettingError
from repertory.launch.experiments import directories
from repertory.launch.experiments import experiment as experiment_lib

KEY = 'initial_from'  # In the state of checkpoints and in logs.

# Arrays of the initial networks, and a description of their origin.
Initial = tuple[Mapping[str, np.ndarray], Mapping[str, Any]]


def read(
  experiment: experiment_lib.Experiment, spec: specs.EnvironmentSpec
) -> Initial | None:
  """Reads the networks of the other run, if any; raises if they do not fit."""
  if experiment.initial_from is None:
    return None
  checkpoint = _load(experiment.initial_from)
  arrays, state = learners.select_learned(checkpoint.arrays), checkpoint.state
  origin = {
    'directory': os.path.realpath(experiment.initial_from),
    'checkpoint': os.path.basename(checkpoint.path),
    'agent': state['experiment']['agent'],
    'environment': state['experiment']['environment'],
    'steps': state['counts']['steps'],
    'learner_steps': state['counts']['learner_steps'],
  }
  builder = experiment.builder
  update = builder.make_update(builder.make_network(spec), spec)
  named = learners.name_learned(update)
  expected = {name: tuple(v.shape) for name, v in named.items()}
  if differences := _compare(arrays, expected):
    more = len(differences) - 4
    raise SettingError(
      KEY,
      'must be a run whose networks are those of this one, but checkpoint '
      f"{checkpoint.path} ('{origin['agent']}' on '{origin['environment']}') "
      f'differs: {"; ".join(differences[:4])}'
      f'{f"; and {more} more" if more > 0 else ""}. Use the settings of '
      'that run, or leave it out.',
    )
  return arrays, origin


def check_resumed(
  experiment: experiment_lib.Experiment, checkpoint: checkpointing.Checkpoint
) -> None:
  """Raises SettingError if a resumed run began with other networks."""
  asked, began = experiment.initial_from, checkpoint.state.get(KEY)
  if asked is None or (began and began['directory'] == os.path.realpath(asked)):
    return
  raise SettingError(
    KEY,
    f'must be left out: the run in {experiment.directory} is resumed, and '
    f'began with {began["directory"] if began else "new networks"}; got '
    f'{asked}. Choose another directory for a new run, or start afresh.',
    fresh=True,
  )


def save(directory: str, initial: Initial | None) -> None:
  """Saves the initial networks of a new run, if any, in its directory."""
  folder = os.path.join(directory, directories.INITIAL)
  shutil.rmtree(folder, ignore_errors=True)
  if initial is None:
    return
  try:
    checkpointing.Checkpointer(folder, 1).save(*initial)
  except OSError as error:
    raise SettingError(
      'directory', f'must have room for {folder}: {error}.'
    ) from error


def _load(directory: str) -> checkpointing.Checkpoint:
  path = os.path.join(directory, directories.CHECKPOINTS)
  try:
    checkpoint = checkpointing.Checkpointer(path).load(check_replay=False)
  except checkpointing.CheckpointError as error:
    raise SettingError(KEY, f'must be readable: {error.problem}') from error
  if checkpoint is not None:
    return checkpoint
  if os.path.isdir(os.path.join(directory, directories.BEST)):
    hint = ' The policy of the best evaluation alone will not do.'
  else:
    hint = directories.describe_absence(directory)
  raise SettingError(
    KEY,
    f'must be the directory of a run with a checkpoint, found none in '
    f'{directory}.{hint}',
  )


def _compare(
  arrays: Mapping[str, np.ndarray], expected: Mapping[str, tuple[int, ...]]
) -> list[str]:
  """Describes the differences between arrays and the expected shapes."""
  found = {name: array.shape for name, array in arrays.items()}
  return [
    f'{name} has shape {found.get(name, "none")} there and '
    f'{expected.get(name, "none")} here'
    for name in dict.fromkeys([*expected, *found])
    if found.get(name) != expected.get(name)
  ]
