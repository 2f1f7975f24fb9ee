"""The end of a road at which the learner is."""

import abc
import contextlib
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from repertory.components import (
  checkpointing,
  datasets,
  replay,
  signals,
)
from repertory.components import experience as experience_lib
from repertory.components.replay import local, writers
from repertory.components.roads import snapshots

if TYPE_CHECKING:
  from repertory.components.roads import demonstrations as demonstrations_lib

# A batch that is due comes at once, unless it was lost.
PATIENCE_SECONDS = 5.0

# How often is looked whether there are enough items to begin.
_POLL_SECONDS = 0.1


class LearnerEnd(snapshots.Snapshots):
  """Batches, what is due of them, priorities, and what a checkpoint saves.

  Attributes:
    kind: That of the road.
    batches: Gives the learner's batches.
    priorities: Takes the items' new ones; None if there are none.
  """

  kind: str
  batches: datasets.Batches
  priorities: replay.Priorities | None
  _demonstrations: 'demonstrations_lib.Demonstrations | None' = None
  # The batches that may have to wait, if `batches` takes rows from them.
  _replayed: datasets.Batches | None = None

  def __init__(
    self, experience: experience_lib.Experience, place: writers.Place
  ):
    """Looks how the tables are.

    So it is called before there are batches: those sample ahead of the learner.

    Args:
      place: Where the items are; its time-out and stop signal end a wait.
    """
    self._experience = experience
    self._table = experience.table
    self._place = place
    self._opened_with = self.statuses()
    self._excused_at = 0.0
    self._starving_since = 0.0
    self._starving_at_step = -1
    self.begin(0)

  def __str__(self) -> str:
    return str(self._place)

  def begin(self, learner_steps: int) -> None:
    """Counts from so many updates, which came before this end was opened."""
    samples = self._first_status.samples
    self._pace = replay.Pace(
      self._table,
      self._experience.batch_size,
      samples=samples,
      learner_steps=learner_steps,
    )

  def mix_in(self, demonstrations: 'demonstrations_lib.Demonstrations') -> None:
    """Lets all batches have rows of data, too; before anybody takes one."""
    self._demonstrations = demonstrations
    self._replayed = self.batches
    self.batches = demonstrations.mix(self._replayed)
    if self.priorities is not None:
      self.priorities = demonstrations.without(self.priorities)

  @abc.abstractmethod
  def statuses(self) -> Mapping[str, replay.TableStatus]:
    """Asks for the state of all tables, by name."""

  # What is due.

  def updates_due(
    self, learner_steps: int, num_items: int | None = None
  ) -> int:
    """Returns how many learner steps are due, for the ratio to acting.

    Args:
      learner_steps: Updates so far.
      num_items: That have been added since this end was opened; None to ask.
    """
    if num_items is None:
      inserts = self._status().inserts
    else:
      inserts = self._first_status.inserts + num_items
    return self._pace.updates_due(learner_steps, inserts)

  def is_batch_due(self) -> bool:
    """Asks whether whoever samples the table, of several, is owed a batch."""
    status = self._status()
    due = self._table.sample_target(status.inserts) - status.samples
    return due >= self._experience.batch_size

  def wait_for_items(self) -> None:
    """Waits until the table holds enough to be sampled from.

    That may take long; the time-out is for the time without a new item, in any
    table on the way, or since `excuse`.

    Raises:
      signals.Stopped: If the stop signal was set.
      TimeoutError: If no item came in time.
      DeadlockError: If nobody is there who could put any.
    """
    inserts, since = -1, time.monotonic()
    while True:
      statuses = self.statuses()
      status = statuses[self._table.name]
      if status.inserts >= self._table.min_size:
        return
      self._check_wait(status)
      all_inserts = sum(one.inserts for one in statuses.values())
      if all_inserts > inserts:
        inserts, since = all_inserts, time.monotonic()
      waited = time.monotonic() - max(since, self._excused_at)
      if waited > self._place.timeout_seconds:
        raise TimeoutError(
          f'Waited {self._place.timeout_seconds:g} seconds for a new item '
          f"in table '{self._table.name}' of {self._place}; it has "
          f'{status.inserts} and needs {self._table.min_size}.'
        )
      if self._place.stop.wait(_POLL_SECONDS):
        raise signals.Stopped

  def excuse(self) -> None:
    """Lets waits for items and batches begin now: there is nobody to act."""
    self._excused_at = time.monotonic()
    self.batches.excuse()

  def expect_batches(self, seconds: float | None = None) -> None:
    """Takes a batch for lost, from now on, that does not come in due time.

    Args:
      seconds: What that is; None for `PATIENCE_SECONDS`.
    """
    batches = self._replayed or self.batches
    patience = PATIENCE_SECONDS if seconds is None else seconds
    batches.patience_seconds = patience

  def count_anew(self, learner_steps: int) -> int:
    """Counts from here: what was sampled before, nobody has any more.

    Args:
      learner_steps: Updates so far.

    Returns:
      How many items were sampled that the learner never got.

    Raises:
      TimeoutError: If no batch has come for too long.
    """
    now, limit = time.monotonic(), self._place.timeout_seconds
    if learner_steps != self._starving_at_step:
      self._starving_at_step, self._starving_since = learner_steps, now
    if now - self._starving_since > limit:
      told = datasets.describe_wait(
        self._table, self._place, self._status(), self._table.bundle_size
      )
      raise TimeoutError(f'Waited {limit:g} seconds for {told}')
    return self._pace.count_anew(learner_steps, self._status().samples)

  # What a checkpoint saves.

  def flush(self) -> None:
    """Waits until the table has all priorities; raises what kept them."""
    if self.priorities is not None:
      self.priorities.flush()

  def describe(self) -> dict[str, Any]:
    """Returns what is to be found again when the tables are restored."""
    mixed = self._demonstrations
    return {
      'road': self.kind,
      **({} if mixed is None else {'demonstrations': mixed.describe()}),
      'bundle_sizes': self._experience.bundle_sizes,
      'tables': {
        name: {'inserts': table.inserts, 'samples': table.samples}
        for name, table in self.statuses().items()
      },
    }

  def check_restored(self, checkpoint: checkpointing.Checkpoint) -> None:
    """Compares how the tables were at first with what `describe` told.

    Raises:
      CheckpointError: If a table lacks what the checkpoint has of it.
    """
    for name, counts in checkpoint.state['tables'].items():
      found = self._opened_with.get(name, replay.TableStatus(0, 0, 0, 0))
      if found.inserts < counts['inserts'] or found.samples < counts['samples']:
        raise checkpointing.CheckpointError(
          f"Table '{name}' should go on from {counts['inserts']} inserts and "
          f'{counts["samples"]} samples, as checkpoint {checkpoint.path} has '
          f'it, but {self._place} restored {found.inserts} and '
          f'{found.samples}.'
        )
    if self._demonstrations is not None:
      with local.reading(f'The state of demonstrations in {checkpoint.path}'):
        self._demonstrations.restore(checkpoint.state.get('demonstrations'))

  def close(self) -> None:
    """Ends a wait for a batch, and all threads."""
    with contextlib.ExitStack() as stack:  # Whichever of them fails.
      if self.priorities is not None:
        stack.callback(self.priorities.close)
      stack.callback(self.batches.close)

  def _check_wait(self, status: replay.TableStatus) -> None:
    """Raises a DeadlockError if nobody is there who could put items."""

  @property
  def _first_status(self) -> replay.TableStatus:
    return self._opened_with[self._table.name]

  def _status(self) -> replay.TableStatus:
    return self.statuses()[self._table.name]
