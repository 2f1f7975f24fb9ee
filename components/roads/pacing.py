"""Which of the learner's batches are due."""

from repertory.components import replay


class Pace:
  """Keeps the ratio of learning to acting.

  One thread may ask what is due while another counts anew.
  """

  def __init__(
    self, table: replay.Table, batch_size: int, samples: int, learner_steps: int
  ):
    """Counts on from how the table is.

    What was sampled ahead of the learner when a checkpoint was written is lost
    to it, but not to the rate limiter.

    Args:
      table: What the learner samples.
      batch_size: Items of each of its steps.
      samples: How many the table has given before the learner begins.
      learner_steps: Updates so far.
    """
    self._table = table
    self._batch_size = batch_size
    # One value, so that nobody sees samples without their learner steps.
    self._origin = (samples, learner_steps)

  def is_due(self, learner_steps: int, inserts: int) -> bool:
    """Returns whether one more learner step is due.

    Args:
      learner_steps: Updates so far.
      inserts: Items so far.
    """
    samples = self._count_samples(learner_steps + 1)
    return samples <= self._table.sample_target(inserts)

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
