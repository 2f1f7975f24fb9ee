"""Checkpoint writer: schedule, contents and error handling."""

import contextlib
import time
from collections.abc import Callable, Mapping
from concurrent import futures
from typing import Any

import numpy as np
from absl import logging

from repertory.components import replay, transports
from repertory.components.checkpoints import checkpointing
from repertory.components.runtime import signals, versions, worker_thread
from repertory.launch.experiments import policy_description
from repertory.launch.experiments import session as session_lib

# Timeout of `close` for a checkpoint being written.
_CLOSE_SECONDS = 5.0


class CheckpointWriter:
  """Writes checkpoints of learner, counts and replay in the background.

  A checkpoint is a consistent snapshot, for which the learner pauses: pending
  priorities are written, the learner's state and the counts are copied, and the
  replay server fixes the set of items to write. A separate thread then writes
  the files.

  The counts of other nodes are up to one heartbeat old, so replay may hold
  items of uncounted environment steps. And if actors do not wait for the
  learner, it may lack items of counted steps: for each environment the queued
  ones, at most the experience's `max_pending_items_per_environment`, and those
  of its last two steps.

  Attributes:
    path: Folder of the latest checkpoint; None unless it is complete.
    on_written: Called with the folder of each written checkpoint, in the writer
      thread, before the next one may begin. It must not block for ever.
  """

  def __init__(
    self,
    session: session_lib.Session,
    snapshots: transports.Snapshots,
    coordinator: Any,
    learner: Any,
    node: str,
  ):
    """Starts without a checkpoint.

    `learner` is `learners.LearnerState`, or the mean of several with its
    `steps`, `save`, `restore` and `begin_with`.
    """
    self._session = session
    self._experiment = session.experiment
    self._snapshots = snapshots
    self._coordinator = coordinator
    self._learner = learner
    self._node = node
    self._checkpointer = session.make_checkpointer()
    self._writing: futures.Future | None = None
    self._is_written = False
    self.path: str | None = None
    self.on_written: Callable[[str], None] = lambda path: None
    self._begun_at = time.monotonic()
    self._begun_at_step = learner.steps
    self._is_closed = False

  def restore(self) -> str | None:
    """Restores the learner if the session is resumed; returns the folder.

    A new run with a warm start takes the parameters of the initial checkpoint.
    """
    session = self._session
    if not session.is_resumed:
      if session.initial is not None:
        self._learner.begin_with(load(session.initial_directory).arrays)
      return None
    # The session checked the checksums of replay before the server started.
    checkpoint = load(session.checkpoint_directory)
    kind, experience = session.transport, session.experience
    is_left_out = session_lib.explain_omission(checkpoint, kind, experience)
    if checkpoint.replay_path and not is_left_out:
      self._snapshots.check_restored(checkpoint)
    self._learner.restore(checkpoint.arrays)
    self._begun_at_step = self._learner.steps
    return checkpoint.path

  def write_if_due(self) -> None:
    """Begins a checkpoint if the period has passed, and checks the last one."""
    self._settle(wait=False)
    is_due = self._writing is None and self._is_due()
    if is_due and self._snapshots.prepare():
      self.begin()

  def write(self) -> str | None:
    """Writes the final checkpoint; returns its folder, None after a warning."""
    self._settle(wait=True)
    self.begin()
    self._settle(wait=True)
    return self.path

  def begin(self) -> None:
    """Takes a snapshot, and begins to write it."""
    self.path, self._is_written = None, False
    self._begun_at = time.monotonic()
    self._begun_at_step = self._learner.steps
    has_snapshot = (
      self._experiment.checkpoint_replay or self._snapshots.has_learners
    )
    try:
      if has_snapshot:
        self._snapshots.remove_snapshots()
      self._snapshots.flush()
    except OSError as error:
      self.fail(error)
      return
    state = self._coordinator.save()
    state['counts'] = {
      **state['counts'],
      'learner_steps': self._learner.steps,
      **self._snapshots.counts(),
    }
    state['versions'] = dict(versions.versions())
    state['sharding'] = self._session.sharding
    state['transport'] = self._session.transport  # Also without replay.
    arrays = self._learner.save()
    write_replay = None
    if has_snapshot:
      state.update(self._snapshots.describe())
      write_replay = self._snapshots.take_snapshot()
    self._writing = worker_thread.run_apart(
      'checkpoint', lambda: self._write(arrays, state, write_replay)
    )

  def close(self) -> None:
    """Cancels the checkpoint being written, if any.

    If its files are already being written, it waits for a few seconds. On a
    hanging disk the checkpoint could still be completed later.
    """
    if self._writing is None:
      return
    self._is_closed = True
    futures.wait([self._writing], timeout=_CLOSE_SECONDS)

  def _is_due(self) -> bool:
    seconds = time.monotonic() - self._begun_at
    if seconds > self._experiment.checkpoint_period_seconds:
      return True
    period = self._experiment.checkpoint_period_learner_steps
    steps = self._learner.steps - self._begun_at_step
    return period is not None and steps >= period

  def _write(
    self,
    arrays: Mapping[str, np.ndarray],
    state: Mapping[str, Any],
    write_replay: Callable[[], str] | None,
  ) -> str:
    """Writes a checkpoint; runs in the writer thread."""
    try:
      replay_path = write_replay() if write_replay else None
      if self._is_closed:
        raise signals.Stopped
      session = self._session
      policy = policy_description.describe(
        state, session.spec, session.transport
      )
      path = self._checkpointer.save(arrays, state, replay_path, policy)
      self._is_written = True
      self.on_written(path)
      return path
    finally:
      # The checkpoint has its own links. The next one removes what is left.
      if write_replay:
        with contextlib.suppress(OSError):
          self._snapshots.remove_snapshots()

  def _settle(self, wait: bool) -> None:
    """Checks on the checkpoint being written; handles its result."""
    if self._writing is None:
      return
    while not self._writing.done():
      self._check_time()
      if not wait:
        return
      futures.wait([self._writing], timeout=1)
    writing, self._writing = self._writing, None
    try:
      self.path = writing.result()
    except (OSError, replay.ReplayCheckpointError) as error:
      self.fail(error)

  def fail(self, error: Exception) -> None:
    """Handles a failed checkpoint: raises, or warns and continues."""
    # A lost replay server is no disk error.
    if isinstance(error, (TimeoutError, ConnectionError)):
      raise error
    message = f'checkpoint not written: {type(error).__name__}: {error}'
    full_message = f'{message}. The previous checkpoint is kept.'
    if self._experiment.checkpoint_errors == 'raise':
      raise checkpointing.CheckpointWriteError(full_message) from error
    logging.warning('%s', full_message)
    try:
      self._coordinator.warn(self._node, message)
    except Exception as unwritten:  # The log may be on the same full disk.
      logging.warning('Warning not written to nodes.jsonl: %s', unwritten)

  def _check_time(self) -> None:
    if self._is_written:
      return  # Calls of `on_written` have time-outs of their own.
    limit = self._experiment.timeout_seconds
    if time.monotonic() - self._begun_at > limit:
      raise TimeoutError(
        f'Waited {limit:g} seconds for a checkpoint to be written, with a '
        f'snapshot of {self._snapshots}.'
      )


def load(
  directory: str, check_replay: bool = False
) -> checkpointing.Checkpoint:
  """Reads the latest checkpoint, see `Checkpointer.load`; there must be one."""
  checkpoint = checkpointing.Checkpointer(directory).load(check_replay)
  if checkpoint is None:
    raise checkpointing.CheckpointError(
      f'{directory} must have a checkpoint, got none.'
    )
  return checkpoint
