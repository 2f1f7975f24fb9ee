"""When checkpoints are written, of what, and what happens if that fails."""

import contextlib
import threading
import time
from collections.abc import Callable, Mapping
from concurrent import futures
from typing import Any, Protocol

import numpy as np
from absl import logging

from repertory.components import (
  checkpointing,
  replay,
  roads,
  signals,
  stack,
)
from repertory.launch.runs import session as session_lib

# How often is looked whether replay has settled what it writes.
_POLL_SECONDS = 0.002

# Of a writer that is closed: for how long it waits for one being written.
_CLOSE_SECONDS = 5.0


class Saved(Protocol):
  """What is saved and restored: a learner, or what several have learned.

  Attributes:
    steps: Updates so far.
  """

  @property
  def steps(self) -> int: ...

  def save(self) -> Mapping[str, np.ndarray]:
    """Returns arrays by name."""
    ...

  def restore(self, state: Mapping[str, np.ndarray]) -> None:
    """Goes on from what `save` returned."""
    ...

  def begin_with(self, state: Mapping[str, np.ndarray]) -> None:
    """Takes what another one had learned, and nothing of its run."""
    ...


class CheckpointWriter:
  """Writes checkpoints of learner, counts and replay while the run goes on.

  A checkpoint is of one moment, for which the learner waits: the table has all
  priorities that the learner computed, the learner's state is copied, the
  counts are taken and the replay server has settled which items it writes.
  What takes long, writing it all, is done in a thread of its own.

  The counts of others are up to one report old at that moment, so
  replay may hold items of environment steps that are not counted. And where
  actors do not wait for the learner, it may lack items of steps that are:
  those on their way, of each environment at most as many as the experience's
  `max_pending_items_per_environment`, and those of its last two steps.
  """

  def __init__(
    self,
    session: session_lib.Session,
    snapshots: roads.Snapshots,
    coordinator: Any,
    learner: Saved,
    node: str,
  ):
    """Writes nothing yet.

    Args:
      snapshots: Take the moment of replay, and may wait for priorities.
      coordinator: Has the counts, and takes warnings.
      learner: What is saved and restored.
      node: Name of the node that warns.
    """
    self._session = session
    self._experiment = session.experiment
    self._snapshots = snapshots
    self._coordinator = coordinator
    self._learner = learner
    self._node = node
    self._checkpointer = session.make_checkpointer()
    self._writing: futures.Future | None = None
    self._path: str | None = None
    self._begun_at = time.monotonic()
    self._begun_at_step = learner.steps
    self._is_closed = False

  def restore(self) -> str | None:
    """Restores the learner, if the session is resumed.

    In a new run it gets what another had learned, if that is wished.

    Returns:
      The checkpoint's folder; None if there is none.

    Raises:
      CheckpointError: If a table lacks what the checkpoint has of it.
    """
    session = self._session
    if not session.is_resumed:
      if session.initial is not None:
        self._learner.begin_with(_load(session.initial_directory).arrays)
      return None
    # The session has compared the checksums of replay before its server read.
    checkpoint = _load(session.checkpoint_directory)
    if session.takes_replay_of(checkpoint):
      self._snapshots.check_restored(checkpoint)
    self._learner.restore(checkpoint.arrays)
    self._begun_at_step = self._learner.steps
    return checkpoint.path

  def write_if_due(self) -> None:
    """Begins a checkpoint after the period, and sees how the last one went.

    Raises:
      TimeoutError: If the last one takes too long.
      UnwrittenError: If it cannot be written and that is to end the run.
    """
    self._settle(wait=False)
    is_due = self._writing is None and self._is_due()
    if is_due and self._snapshots.prepare():
      self.begin()

  def write(self) -> str | None:
    """Writes a checkpoint and waits for it; for the end of a run.

    Returns:
      The checkpoint's folder; None if it could not be written, which was told.

    Raises:
      TimeoutError: If it takes too long.
      UnwrittenError: If it cannot be written and that is to end the run.
    """
    self._settle(wait=True)
    self.begin()
    self._settle(wait=True)
    return self._path

  def begin(self) -> None:
    """Takes what a checkpoint holds, of this moment, and lets it be written."""
    self._path = None
    self._begun_at = time.monotonic()
    self._begun_at_step = self._learner.steps
    self._snapshots.flush()
    state = self._coordinator.save()
    state['counts'] = {
      **state['counts'],
      'learner_steps': self._learner.steps,
      **self._snapshots.counts(),
    }
    state['versions'] = dict(stack.versions())
    state['division'] = self._session.division
    state['road'] = self._session.road  # Also of one without replay.
    arrays = self._learner.save()
    has_replay = self._experiment.checkpoint_replay
    if not (has_replay or self._snapshots.has_learners):
      self._writing = _start(lambda: self._save(arrays, state, None))
      return
    state.update(self._snapshots.describe())
    try:
      self._snapshots.remove_snapshots()
    except OSError as error:
      self.fail(error)
      return
    self._writing = _start(lambda: self._write(arrays, state))
    while not (self._writing.done() or self._snapshots.is_snapshot_taken()):
      self._check_time()
      time.sleep(_POLL_SECONDS)

  def is_writing(self) -> bool:
    """Returns whether what was begun is still being written.

    Raises:
      TimeoutError: If it takes too long.
      UnwrittenError: If it cannot be written and that is to end the run.
    """
    self._settle(wait=False)
    return self._writing is not None

  @property
  def path(self) -> str | None:
    """The folder of the last one begun; None if that is not whole."""
    return self._path

  def close(self) -> None:
    """Gives up a checkpoint that is being written, if there is one.

    If its files are being written it waits for the end, but not for ever:
    on a disk that hangs it could still be completed later.
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
    self, arrays: Mapping[str, np.ndarray], state: Mapping[str, Any]
  ) -> str:
    """Writes a checkpoint with replay; in a thread of its own."""
    try:
      replay_path = self._snapshots.write_snapshot()
      return self._save(arrays, state, replay_path)
    finally:
      # The checkpoint has links of its own. What cannot be removed is tried
      # again before the next one.
      with contextlib.suppress(OSError):
        self._snapshots.remove_snapshots()

  def _save(
    self,
    arrays: Mapping[str, np.ndarray],
    state: Mapping[str, Any],
    replay_path: str | None,
  ) -> str:
    if self._is_closed:
      raise signals.Stopped
    return self._checkpointer.save(arrays, state, replay_path)

  def _settle(self, wait: bool) -> None:
    """Takes note of how the checkpoint that is being written went."""
    if self._writing is None:
      return
    while not self._writing.done():
      self._check_time()
      if not wait:
        return
      futures.wait([self._writing], timeout=1)
    writing, self._writing = self._writing, None
    try:
      self._path = writing.result()
    except (OSError, replay.ReplayCheckpointError) as error:
      self.fail(error)

  def fail(self, error: Exception) -> None:
    """Raises what kept one from being written, or tells of it and goes on."""
    # A replay server that is gone is none of the disk's errors.
    if isinstance(error, (TimeoutError, ConnectionError)):
      raise error
    message = f'checkpoint not written: {type(error).__name__}: {error}'
    told = f'{message}. What was saved before is kept.'
    if self._experiment.checkpoint_errors == 'raise':
      raise checkpointing.UnwrittenError(told) from error
    logging.warning('%s', told)
    try:
      self._coordinator.warn(self._node, message)
    except Exception as unwritten:  # That log may be on the same full disk.
      logging.warning('Nor is that in nodes.jsonl: %s', unwritten)

  def _check_time(self) -> None:
    limit = self._experiment.timeout_seconds
    if time.monotonic() - self._begun_at > limit:
      raise TimeoutError(
        f'Waited {limit:g} seconds for a checkpoint to be written, and for '
        f'{self._snapshots} to do its part.'
      )


def _load(directory: str) -> checkpointing.Checkpoint:
  """Reads the newest checkpoint where there must be one, but for its replay."""
  checkpoint = checkpointing.Checkpointer(directory).load(check_replay=False)
  if checkpoint is None:
    raise checkpointing.CheckpointError(
      f'There should be a checkpoint in {directory}.'
    )
  return checkpoint


def _start(write: Callable[[], str]) -> futures.Future:
  """Runs a function in a thread that keeps nobody from ending."""
  future = futures.Future()

  def run():
    try:
      future.set_result(write())
    except BaseException as error:  # Raised by the one who waits.
      future.set_exception(error)

  threading.Thread(target=run, name='checkpoint', daemon=True).start()
  return future
