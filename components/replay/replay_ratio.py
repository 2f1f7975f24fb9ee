"""Replay ratio for acting and learning in a single thread."""

from repertory.components.replay import tables


class ReplayRatio:
  """Enforces the replay ratio in a single thread.

  A single thread that acts and learns must not ask the table for more than its
  rate limiter allows: no other thread could end the wait. It asks this object
  first::

    ratio = replay.ReplayRatio(table, batch_size=32)
    while steps < max_steps:
      steps += loop.step()[0]
      for _ in range(ratio.updates_due(learner.steps, adder.num_items)):
        learner.step()

  After n items, (n − min_size) × samples_per_insert samples are due, or n for a
  queue. An update is due when its whole batch is. So the replay ratio is exact.
  The topology `single` uses the same class.

  One thread may query while another calls `reset_count`.
  """

  def __init__(
    self,
    table: tables.TableSpec,
    batch_size: int,
    *,
    items_per_insert: int = 1,
    samples: int = 0,
    learner_steps: int = 0,
  ):
    """Starts counting at the current state of the table.

    Prefetched samples of a checkpoint are lost to the learner, but counted.

    Args:
      table: The table that the learner samples.
      batch_size: Items of each update.
      items_per_insert: Maximum items that one step of all environments creates.
      samples: Items sampled from the table before the learner begins.
      learner_steps: Updates so far.

    Raises:
      SettingError: If acting and learning would both wait forever with this
        table; names the setting to change.
    """
    table.check(batch_size, items_per_insert)
    self._table = table
    self._batch_size = batch_size
    # A single tuple, so that other threads read a consistent pair.
    self._origin = (samples, learner_steps)

  def updates_due(self, learner_steps: int, num_items: int) -> int:
    """Returns the number of updates due after `learner_steps` of them.

    Their batches are available once the table holds all `num_items`, the items
    ever written to it: flush an adder with pending items first.
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

  def reset_count(self, learner_steps: int, samples: int) -> int:
    """Restarts the count; returns the samples that the learner never got."""
    lost = samples - self._count_samples(learner_steps)
    self._origin = (samples, learner_steps)
    return lost

  def _count_samples(self, learner_steps: int) -> int:
    samples, first_step = self._origin
    return samples + (learner_steps - first_step) * self._batch_size
