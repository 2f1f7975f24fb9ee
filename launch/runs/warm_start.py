"""New runs that begin with what another one has learned."""

import dataclasses
import os
import shutil
from collections.abc import Mapping
from typing import Any

import numpy as np

from repertory.components import checkpointing, learners, specs
from repertory.components.settings import SettingError
from repertory.launch import experiment as experiment_lib
from repertory.launch.runs import directories
from repertory.launch.runs import session as session_lib

# Under what the state of a checkpoint, and logs, tell of it.
KEY = 'initial_from'

# More differences than that say no more.
_MAX_DIFFERENCES = 4


class WarmStart:
  """What a run begins with, if it is new and that is wished."""

  def __init__(
    self, experiment: experiment_lib.Experiment, spec: specs.EnvironmentSpec
  ):
    """Reads nothing yet.

    Args:
      spec: What the experiment's environment takes and gives.
    """
    self._experiment = experiment
    self._spec = spec
    self._found: tuple[Mapping[str, np.ndarray], Mapping[str, Any]] | None
    self._found = None

  def read(self) -> None:
    """Reads what it is to begin with, and sees whether it fits.

    Raises:
      SettingError: If there is nothing to begin with, or it does not fit.
    """
    directory = self._experiment.initial_from
    if directory is None or self._found:
      return
    checkpoint = _load(directory)
    arrays = learners.select_learned(checkpoint.arrays)
    state = checkpoint.state
    told = {
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
        f"{checkpoint.path} ('{told['agent']}' on '{told['environment']}') "
        f'differs: {"; ".join(differences[:_MAX_DIFFERENCES])}'
        f'{f"; and {more} more" if more > 0 else ""}. Ask for the settings of '
        'that run, or leave it out.',
      )
    self._found = arrays, told

  def settle(self, checkpoint: checkpointing.Checkpoint | None) -> None:
    """Sees whether what is asked for is what the run begins, or began, with.

    What a run that is resumed began with need not be there any more.

    Args:
      checkpoint: What it goes on from; None if it is new.

    Raises:
      SettingError: If it is not, or there is nothing to begin with.
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
      f'must be left out, for the run in {directory} is resumed, and it began '
      f'with {began["directory"] if began else "nothing"}; got {asked}. Choose '
      'another directory for a new run, or start afresh.',
      fresh=True,
    )

  def place(self, session: session_lib.Session) -> session_lib.Session:
    """Puts what a new run begins with where its learner finds it.

    The other run may go on, and remove its checkpoint, before that looks.

    Returns:
      The session, which tells of it.

    Raises:
      SettingError: If it cannot be written.
    """
    if session.is_resumed:
      return session
    folder = session.initial_directory
    shutil.rmtree(folder, ignore_errors=True)
    if self._found is None:
      return session
    arrays, told = self._found
    try:
      checkpointing.Checkpointer(folder, 1).save(arrays, told)
    except OSError as error:
      raise SettingError(
        'directory', f'must have room for {folder}: {error}.'
      ) from error
    return dataclasses.replace(session, initial=told)

  def _expected_shapes(self) -> dict[str, tuple[int, ...]]:
    """Makes what is to be learned, for its variables' names and shapes."""
    builder, spec = self._experiment.builder, self._spec
    update = builder.make_update(builder.make_network(spec), spec)
    named = learners.name_learned(update)
    return {name: tuple(v.shape) for name, v in named.items()}


def describe(session: session_lib.Session) -> str:
  """Says what a new run begins with; '' if with nothing."""
  if session.initial is None:
    return ''
  told = session.initial
  return (
    f'begins with what {told["directory"]} had learned by update '
    f'{told["learner_steps"]}'
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
  """Returns how arrays differ from what is expected, in words."""
  found = {name: array.shape for name, array in arrays.items()}
  if found == expected:
    return []
  # One layer more would change the numbers of all that come after it.
  there, here = _without_places(found), _without_places(expected)
  if there == here:
    there, here = found, expected

  def describe(name: str) -> str:
    if name not in there:
      return f'{name} is missing there'
    if name not in here:
      return f'{name} is not known here'
    return f'{name} has shape {there[name]} there and {here[name]} here'

  return [
    describe(name)
    for name in dict.fromkeys([*here, *there])
    if there.get(name) != here.get(name)
  ]


def _without_places(
  shapes: Mapping[str, tuple[int, ...]],
) -> dict[str, tuple[int, ...]]:
  """Names variables by group and name, and the second of a name as that."""
  named: dict[str, tuple[int, ...]] = {}
  for name, shape in shapes.items():
    group, _, own = name.split('/', 2)
    plain = short = f'{group}/{own.removesuffix(":0")}'
    number = 1
    while short in named:
      number += 1
      short = f'{plain} ({number})'
    named[short] = shape
  return named
