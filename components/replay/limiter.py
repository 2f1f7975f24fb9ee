"""Arithmetic of a rate limiter."""

import math

from repertory.components.replay import tables


class Limiter:
  """Counts inserts and samples, and computes how many more are allowed.

  It implements `rate_limiters.RateLimit`, or the limits of a queue: inserts
  wait while it is full, and samples while it has too few items. The first
  `min_size` inserts are always allowed, because nothing can be sampled before.

  Attributes:
    inserts: Items ever inserted.
    samples: Items ever sampled.
  """

  def __init__(
    self, table: tables.TableSpec, inserts: int = 0, samples: int = 0
  ):
    """Starts at the given counts."""
    self.inserts = inserts
    self.samples = samples
    limit = table.rate_limit
    self._min_size = table.min_size
    if limit is None:
      self._ratio, self._least, self._most = 1.0, 0.0, float(table.max_size)
    else:
      self._ratio = limit.samples_per_insert
      middle = limit.samples_per_insert * limit.min_size
      self._least = middle - limit.error_buffer
      self._most = middle + limit.error_buffer

  def may_sample(self, num_samples: int, size: int) -> bool:
    """Returns whether `num_samples` items may be sampled at once.

    Args:
      num_samples: Items of one request.
      size: Items left in the table when the last of them is drawn.
    """
    return self._may_sample(num_samples, size, 0)

  def num_insertable(self, at_most: int) -> int:
    """Returns the number of items that may be inserted now, up to `at_most`."""
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
    """Returns the number of inserts needed before `num_samples` can be drawn.

    Args:
      num_samples: Items of one request.
      size: Items of the current table left when the last of them is drawn.
    """
    lowest = (self._least + self.samples + num_samples) / self._ratio
    # Rounding, as above.
    count = math.ceil(max(lowest, 0.0)) - self.inserts - 1
    count = max(count, self._min_size - size, 0)
    while not self._may_sample(num_samples, size, count):
      count += 1
    return count

  def samples_missing(self, num_items: int) -> int:
    """Returns the number of samples needed before `num_items` more fit."""
    error = (self.inserts + num_items) * self._ratio - self.samples
    count = math.ceil(max(error - self._most - 1, 0.0))  # Rounding, as above.
    while not self._may_insert(num_items, count):
      count += 1
    return count

  def _may_sample(self, num_samples: int, size: int, num_items: int) -> bool:
    """Returns whether samples are allowed after `num_items` more inserts."""
    if size + num_items < self._min_size:
      return False
    inserts, samples = self.inserts + num_items, self.samples + num_samples
    return inserts * self._ratio - samples >= self._least

  def _may_insert(self, num_items: int, num_samples: int = 0) -> bool:
    """Returns whether inserts are allowed after `num_samples` more samples."""
    inserts, samples = self.inserts + num_items, self.samples + num_samples
    if inserts <= self._min_size:
      return True
    return inserts * self._ratio - samples <= self._most
