"""The arithmetic of a rate limiter: who may go on, and what others lack."""

import math

from repertory.components.replay import tables


class Limiter:
  """Counts inserts and samples, and tells how many more there may be.

  It keeps what `rate_limiters.RateLimit` says, or for a queue: inserts wait
  while it is full, and samples while it has too few items. The first `min_size`
  inserts are always let in, for nothing can be sampled before.

  Attributes:
    inserts: Items ever inserted.
    samples: Items ever sampled.
  """

  def __init__(self, table: tables.Table, inserts: int = 0, samples: int = 0):
    """Counts on from there."""
    self.inserts = inserts
    self.samples = samples
    limit = table.rate_limit
    self._min_size = table.min_size
    if limit is None:
      # As many samples as inserts, and none ahead.
      self._ratio, self._least, self._most = 1.0, 0.0, float(table.max_size)
    else:
      self._ratio = limit.samples_per_insert
      middle = limit.samples_per_insert * limit.min_size
      self._least = middle - limit.error_buffer
      self._most = middle + limit.error_buffer

  def may_sample(self, num_samples: int, size: int) -> bool:
    """Returns whether so many items may be sampled at once.

    Args:
      num_samples: How many.
      size: Items that will be there when the last of them is drawn.
    """
    return self._may_sample(num_samples, size, 0)

  def num_insertable(self, at_most: int) -> int:
    """Returns how many items may be inserted now, but not more than asked."""
    if self._may_insert(at_most):
      return at_most
    # Rounding may be off by one.
    highest = (self._most + self.samples) / self._ratio
    count = math.floor(highest) - self.inserts + 1
    count = max(count, self._min_size - self.inserts, 0)
    while count and not self._may_insert(count):
      count -= 1
    return min(count, at_most)

  def inserts_missing(self, num_samples: int, size: int) -> int:
    """Returns how many inserts it takes until so many items may be sampled.

    Args:
      num_samples: How many, at once.
      size: Items that would be there now when the last of them is drawn.
    """
    lowest = (self._least + self.samples + num_samples) / self._ratio
    # Rounding, as above.
    count = math.ceil(max(lowest, 0.0)) - self.inserts - 1
    count = max(count, self._min_size - size, 0)
    while not self._may_sample(num_samples, size, count):
      count += 1
    return count

  def samples_missing(self, num_items: int) -> int:
    """Returns how many samples it takes until so many may be inserted."""
    error = (self.inserts + num_items) * self._ratio - self.samples
    count = math.ceil(max(error - self._most - 1, 0.0))  # Rounding, as above.
    while not self._may_insert(num_items, count):
      count += 1
    return count

  def _may_sample(self, num_samples: int, size: int, num_items: int) -> bool:
    """Whether so many may be sampled once so many more are inserted."""
    if size + num_items < self._min_size:
      return False
    inserts, samples = self.inserts + num_items, self.samples + num_samples
    return inserts * self._ratio - samples >= self._least

  def _may_insert(self, num_items: int, num_samples: int = 0) -> bool:
    """Whether so many may be inserted once so many more are sampled."""
    inserts, samples = self.inserts + num_items, self.samples + num_samples
    if inserts <= self._min_size:
      return True
    return inserts * self._ratio - samples <= self._most
