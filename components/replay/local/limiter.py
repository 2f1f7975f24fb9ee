"""The rate limiter of a table of this process."""

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

  def __init__(self, table: tables.Table):
    """Has counted nothing yet."""
    self.inserts = 0
    self.samples = 0
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
    if size < self._min_size:
      return False
    error = self.inserts * self._ratio - (self.samples + num_samples)
    return error >= self._least

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

  def _may_insert(self, num_items: int) -> bool:
    inserts = self.inserts + num_items
    if inserts <= self._min_size:
      return True
    return inserts * self._ratio - self.samples <= self._most
