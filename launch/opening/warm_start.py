"""Warm starts: new runs that begin with the networks of another run."""

import dataclasses
import os
import shutil
from collections.abc import Mapping
from typing import Any

import numpy as np

from repertory.components import learners, specs
from repertory.components.checkpoints import checkpointing
from repertory.components.config.settings import SettingError
from repertory.launch.experiments import experiment as experiment_lib
from repertory.launch.opening import directories
from repertory.launch.opening import session as session_lib

# Key in the state of checkpoints and in logs.
KEY = 'initial_from'

_MAX_DIFFERENCES = 4  # In an error message.


class WarmStart:
  """Initial networks of a new run, taken from another run."""

  def __init__(
    self, experiment: experiment_lib.Experiment, spec: specs.EnvironmentSpec
  ):
    """Reads nothing yet.

    Args:
      spec: The environment's spec.
    """
    self._experiment = experiment
    self._spec = spec
    self._found: tuple[Mapping[str, np.ndarray], Mapping[str, Any]] | None
    self._found = None

  def read(self) -> None:
    """Reads the other run's networks, and checks that they fit.

    Raises:
      SettingError: If there are none, or they do not fit.
    """
    directory = self._experiment.initial_from
    if directory is None or self._found:
      return
    checkpoint = _load(directory)
    arrays = learners.select_learned(checkpoint.arrays)
    state = checkpoint.state
    origin = {
      'directory': os.path.realpath(directory),
      'checkpoint': os.path.basename(checkpoint.path),
      'agent': state['experiment']['agent'],
      'environment': state['experiment']['environment'],
      'steps': state['counts']['steps'],
      'learner_steps': state['counts']['learner_steps'],
    }
    differences = _compare(arrays, self._expected_shapes())
    if differences:
      more = len(differences) - _MAX_DIFFERENCES
      raise SettingError(
        KEY,
        'must be a run whose networks are those of this one, but checkpoint '
        f"{checkpoint.path} ('{origin['agent']}' on '{origin['environment']}') "
        f'differs: {"; ".join(differences[:_MAX_DIFFERENCES])}'
        f'{f"; and {more} more" if more > 0 else ""}. Use the settings of '
        'that run, or leave it out.',
      )
    self._found = arrays, origin

  def settle(self, checkpoint: checkpointing.Checkpoint | None) -> None:
    """Checks that the setting is what the run begins, or began, with.

    For a resumed run, the other run's directory need not exist any more.

    Args:
      checkpoint: Checkpoint to resume from; None for a new run.

    Raises:
      SettingError: If it is not, or a new run finds no fitting networks.
    """
    if checkpoint is None:
      self.read()
      return
    directory = self._experiment.directory
    asked, began = self._experiment.initial_from, checkpoint.state.get(KEY)
    if asked is None or (
      began and began['directory'] == os.path.realpath(asked)
    ):
      return
    raise SettingError(
      KEY,
      f'must be left out: the run in {directory} is resumed, and began with '
      f'{began["directory"] if began else "new networks"}; got {asked}. Choose '
      'another directory for a new run, or start afresh.',
      fresh=True,
    )

  def place(self, session: session_lib.Session) -> session_lib.Session:
    """Saves the initial networks of a new run in its own directory.

    The other run may remove its checkpoint before this run's learner reads it.

    Returns:
      The session, with a description of their origin.

    Raises:
      SettingError: If they cannot be written.
    """
    if session.is_resumed:
      return session
    folder = session.initial_directory
    shutil.rmtree(folder, ignore_errors=True)
    if self._found is None:
      return session
    arrays, origin = self._found
    try:
      checkpointing.Checkpointer(folder, 1).save(arrays, origin)
    except OSError as error:
      raise SettingError(
        'directory', f'must have room for {folder}: {error}.'
      ) from error
    return dataclasses.replace(session, initial=origin)

  def _expected_shapes(self) -> dict[str, tuple[int, ...]]:
    """Builds the update, for the names and shapes of its variables."""
    builder, spec = self._experiment.builder, self._spec
    update = builder.make_update(builder.make_network(spec), spec)
    named = learners.name_learned(update)
    return {name: tuple(v.shape) for name, v in named.items()}


def describe(session: session_lib.Session) -> str:
  """Describes the origin of a new run's networks; '' if they are new."""
  if session.initial is None:
    return ''
  origin = session.initial
  return (
    f'begins with the networks of {origin["directory"]} after update '
    f'{origin["learner_steps"]}'
  )


def _load(directory: str) -> checkpointing.Checkpoint:
  path = os.path.join(directory, directories.CHECKPOINTS)
  try:
    checkpoint = checkpointing.Checkpointer(path).load(check_replay=False)
  except checkpointing.CheckpointError as error:
    raise SettingError(KEY, f'must be readable: {error.for_readers}') from error
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
