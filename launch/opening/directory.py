"""Opens the directory of a run."""

import contextlib
import dataclasses
import functools
import os
from collections.abc import Callable, Iterator

from repertory.components import offline
from repertory.components.checkpoints import checkpointing
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
  check = functools.partial(session_lib.check_identity, identity=plan.identity)
  source, initial = experiment.initial_from, None
  if source and (
    fresh or not (plan.storage or directories.has_checkpoint(directory))
  ):
    # Before the directory may be moved aside.
    initial = opened_lib.read_initial(plan, source)
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
      held.enter_context(directories.starting_over(directory))
    checkpoint = directories.load_checkpoint(directory)
    if checkpoint is not None:
      check(checkpoint)
      opened = opened_lib.resume(plan, checkpoint)
    else:
      if source and initial is None:  # The storage has no checkpoint, either.
        initial = opened_lib.read_initial(plan, source)
      opened = opened_lib.begin(plan, initial)
      directories.save_initial(directory, initial)
    cleared = directories.clear(directory)
    checkpointing.prepare_replay(
      opened.replay_path, os.path.join(directory, directories.REPLAY)
    )
    if experiment.record and plan.recording:
      offline.prepare(experiment.record, plan.recording)
    messages = fetched, opened.message, opened.replay.warning, cleared
    message = '; '.join(filter(None, messages))
    yield dataclasses.replace(opened, message=message)
