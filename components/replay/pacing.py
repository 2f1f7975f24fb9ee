"""Whose turn it is, where acting and learning take turns."""

import sys

from repertory.components.replay import limiter, tables


class Pace:
  """Tells how many updates are due, and how many steps are allowed.

  Who acts and learns in one thread must not ask the table for more than its
  rate limiter gives: nobody else is there to end the wait. So they ask here
  first::

    pace = replay.Pace(table, batch_size=32)
    while steps < max_steps:
      steps += loop.step()[0]
      for _ in range(pace.updates_due(learner.steps, adder.num_items)):
        learner.step()

  After n items, (n − min_size) × samples_per_insert samples are due, or of a
  queue n; an update is due when its whole batch is. So the ratio of learning to
  acting is exact. The topology `single` does the same.

  One thread may ask while another counts anew.
  """

  def __init__(
    self,
    table: tables.Table,
    batch_size: int,
    *,
    items_per_step: int = 1,
    samples: int = 0,
    learner_steps: int = 0,
  ):
    """Counts on from how the table is.

    What was sampled ahead of the learner when a checkpoint was written is lost
    to it, but not to the rate limiter.

    Args:
      table: What the learner samples.
      batch_size: Items of each of its updates.
      items_per_step: The most items that one step of all environments makes.
      samples: How many the table has given before the learner begins.
      learner_steps: Updates so far.

    Raises:
      SettingError: If the table is such that acting and learning would both
        wait, naming the setting to change.
    """
    table.check(batch_size, items_per_step)
    self._table = table
    self._batch_size = batch_size
    self._items_per_step = items_per_step
    # One value, so that nobody sees samples without their learner steps.
    self._origin = (samples, learner_steps)

  def updates_due(self, learner_steps: int, num_items: int) -> int:
    """Returns how many updates are due.

    Their batches are there when the table has taken all items: an adder that
    may have some on their way is flushed before.

    Args:
      learner_steps: Updates so far.
      num_items: Items that the table was ever given: `Adder.num_items`, if it
        began empty.
    """
    samples = self._count_samples(learner_steps)
    target = self._table.sample_target(num_items)
    count = max(0, int((target - samples) // self._batch_size))
    # Rounding may be off by one.
    while samples + (count + 1) * self._batch_size <= target:
      count += 1
    while count and samples + count * self._batch_size > target:
      count -= 1
    return count

  def steps_allowed(self, learner_steps: int, num_items: int) -> int:
    """Returns how many steps of all environments the table has room for.

    At least one if no update is due. Who takes more before the next update is
    held back.

    Args:
      learner_steps: Updates so far.
      num_items: Items that the table was ever given.
    """
    samples = self._count_samples(learner_steps)
    counts = limiter.Limiter(self._table, num_items, samples)
    return counts.num_insertable(sys.maxsize) // self._items_per_step

  def count_anew(self, learner_steps: int, samples: int) -> int:
    """Counts from here: what was sampled before, nobody has any more.

    Args:
      learner_steps: Updates so far.
      samples: How many the table has given so far.

    Returns:
      How many items were sampled that the learner never got.
    """
    lost = samples - self._count_samples(learner_steps)
    self._origin = (samples, learner_steps)
    return lost

  def _count_samples(self, learner_steps: int) -> int:
    """Returns the items sampled if the learner got them all."""
    samples, first_step = self._origin
    return samples + (learner_steps - first_step) * self._batch_size
