"""Which of the learner's batches are due, and what if one does not come."""

import time

from repertory.components import replay

# A batch that is due comes at once, unless it was lost.
PATIENCE_SECONDS = 5.0


class Pace:
  """Keeps the ratio of learning to acting.

  One thread may ask what is due while another counts anew.
  """

  def __init__(
    self,
    connection: replay.Connection,
    table: replay.Table,
    batch_size: int,
    status: replay.TableStatus,
    learner_steps: int,
  ):
    """Counts on from how the table is.

    What was sampled ahead of the learner when a checkpoint was written is lost
    to it, but not to the rate limiter.

    Args:
      connection: To the replay server.
      table: What the learner samples.
      batch_size: Items of each of its steps.
      status: Of the table, before it is sampled.
      learner_steps: Updates so far.
    """
    self._connection = connection
    self._table = table
    self._batch_size = batch_size
    # One value, so that nobody sees samples without their learner steps.
    self._origin = (status.samples, learner_steps)
    self._starving_since = 0.0
    self._starving_at_step = -1

  def is_due(self, learner_steps: int, inserts: int) -> bool:
    """Returns whether one more learner step is due.

    Args:
      learner_steps: Updates so far.
      inserts: Items so far.
    """
    samples = self._count_samples(learner_steps + 1)
    return samples <= self._table.sample_target(inserts)

  def count_anew(self, learner_steps: int) -> int:
    """Counts from here: what was sampled before, nobody has any more.

    Args:
      learner_steps: Updates so far.

    Returns:
      How many items were sampled that the learner never got.

    Raises:
      TimeoutError: If no batch has come for too long.
    """
    now, limit = time.monotonic(), self._connection.timeout_seconds
    if learner_steps != self._starving_at_step:
      self._starving_at_step, self._starving_since = learner_steps, now
    if now - self._starving_since > limit:
      raise TimeoutError(
        f"Waited {limit:g} seconds for a batch from table '{self._table.name}' "
        f'of {self._connection}.'
      )
    tables = replay.table_status(self._connection.client, [self._table])
    samples = tables[self._table.name].samples
    lost = samples - self._count_samples(learner_steps)
    self._origin = (samples, learner_steps)
    return lost

  def _count_samples(self, learner_steps: int) -> int:
    """Returns the items sampled if the learner got them all."""
    samples, first_step = self._origin
    return samples + (learner_steps - first_step) * self._batch_size
