"""Opens the directory of a run."""

import contextlib
import dataclasses
import os
from collections.abc import Callable, Iterator, Mapping

import numpy as np

from repertory.components import learners, offline
from repertory.components.checkpoints import checkpointing
from repertory.components.config.settings import SettingError
from repertory.launch.experiments import directories
from repertory.launch.experiments import session as session_lib
from repertory.launch.opening import opened as opened_lib
from repertory.launch.opening import plan as plan_lib
from repertory.launch.opening import remote_storage


@contextlib.contextmanager
def open_run(
  plan: plan_lib.Plan,
  fresh: bool = False,
  report: Callable[[str], None] = lambda message: None,
) -> Iterator[opened_lib.Opened]:
  """Holds the directory of a run, and prepares it to start or to resume.

  The storage, if any, is locked, too, and its newer checkpoints are fetched.
  `report` is called with a description of what may take minutes.

  Raises:
    ValueError: If another run holds the directory or the storage; nothing was
      written.
    CheckpointError: If the checkpoint cannot be read or is of another
      experiment; nothing was written.
  """
  experiment, directory = plan.experiment, plan.experiment.directory

  def check(checkpoint: checkpointing.Checkpoint) -> None:
    session_lib.check_identity(checkpoint, plan.identity)

  # Before the directory may be moved aside.
  initial = _read_initial(plan, begins=fresh)
  directories.check_writable(directory)
  if not fresh:
    directories.check_run(directory)
  # Locks first, so that no other run changes what is read next.
  with contextlib.ExitStack() as held:
    held.enter_context(directories.hold(directory))
    fetched = ''
    if plan.storage is not None:
      fetched = held.enter_context(
        remote_storage.holding(plan.storage, experiment, fresh, check, report)
      )
    if fresh:
      held.enter_context(directories.start_over(directory))
    checkpoint = directories.load_checkpoint(directory)
    if checkpoint is not None:
      opened = opened_lib.resume(plan, checkpoint)
    else:
      initial = initial or _read_initial(plan, begins=True)
      opened = opened_lib.begin(plan, initial and initial[1])
    cleared = directories.prepare_run(directory, opened.replay_path)
    if checkpoint is None:
      directories.save_initial(directory, initial)
    if experiment.record and plan.recording:
      offline.prepare(experiment.record, plan.recording)
    messages = fetched, opened.message, opened.replay.warning, cleared
    message = '; '.join(filter(None, messages))
    yield dataclasses.replace(opened, message=message)


def _read_initial(
  plan: plan_lib.Plan, begins: bool
) -> directories.Initial | None:
  """Reads the other run's networks for a new run, if it asks for them.

  Args:
    begins: Whether the run is new for certain; else it is if neither its
      directory nor its storage may have a checkpoint.

  Raises:
    SettingError: If they cannot be read, or do not fit.
  """
  experiment = plan.experiment
  source = experiment.initial_from
  if source is None or not (
    begins
    or (
      plan.storage is None
      and not directories.has_checkpoint(experiment.directory)
    )
  ):
    return None
  checkpoint = directories.load_initial(source)
  arrays, state = learners.select_learned(checkpoint.arrays), checkpoint.state
  origin = {
    'directory': os.path.realpath(source),
    'checkpoint': os.path.basename(checkpoint.path),
    'agent': state['experiment']['agent'],
    'environment': state['experiment']['environment'],
    'steps': state['counts']['steps'],
    'learner_steps': state['counts']['learner_steps'],
  }
  builder = experiment.builder
  update = builder.make_update(builder.make_network(plan.spec), plan.spec)
  named = learners.name_learned(update)
  expected = {name: tuple(v.shape) for name, v in named.items()}
  if differences := _compare_shapes(arrays, expected):
    more = len(differences) - 4
    raise SettingError(
      'initial_from',
      'must be a run whose networks are those of this one, but checkpoint '
      f"{checkpoint.path} ('{origin['agent']}' on '{origin['environment']}') "
      f'differs: {"; ".join(differences[:4])}'
      f'{f"; and {more} more" if more > 0 else ""}. Use the settings of '
      'that run, or leave it out.',
    )
  return arrays, origin


def _compare_shapes(
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
