"""Rate limits of replay tables, and their validation."""

import dataclasses
import math

from repertory.components.config.settings import SettingError

# Default error buffer, as a share of the samples due at the minimal size.
_BUFFER_SHARE = 0.1


@dataclasses.dataclass(frozen=True)
class RateLimit:
  """Keeps inserts and samples at a fixed ratio.

  With e = inserts × `samples_per_insert` − samples, inserts wait above
  `samples_per_insert` × `min_size` + `error_buffer` and samples wait below
  `samples_per_insert` × `min_size` − `error_buffer`.

  Attributes:
    samples_per_insert: Mean samples per *item* (not batch or environment step).
    min_size: Items in the table before the first sample, at least 1.
    error_buffer: Maximum lead of either side, in samples; at least `max(1,
      samples_per_insert)`, or both could wait forever.
  """

  samples_per_insert: float
  min_size: int
  error_buffer: float

  def __post_init__(self):
    if not 0 < self.samples_per_insert < float('inf'):
      raise SettingError(
        'samples_per_insert',
        f'must be positive and finite, got {self.samples_per_insert}.',
      )
    if self.min_size < 1:
      raise SettingError(
        'min_size', f'must be at least 1, got {self.min_size}.'
      )
    smallest = max(1.0, self.samples_per_insert)
    if not self.error_buffer >= smallest:
      raise SettingError(
        'error_buffer',
        f'must be at least max(1, samples_per_insert) = {smallest:g}, or '
        'inserting and sampling could both wait forever; got '
        f'{self.error_buffer}.',
      )

  @classmethod
  def with_default_buffer(
    cls,
    samples_per_insert: float,
    min_size: int,
    *,
    batch_size: int,
    items_per_insert: int = 1,
  ) -> 'RateLimit':
    """Returns a rate limit with a buffer that keeps acting and learning close.

    It is a tenth of the samples due at `min_size`, but at least twice the
    minimum of `TableSpec.check`, for updates of `batch_size` items and steps of
    all environments that create up to `items_per_insert` items.
    """
    turn = batch_size + samples_per_insert * items_per_insert
    buffer = max(_BUFFER_SHARE * samples_per_insert * min_size, 2 * turn)
    return cls(samples_per_insert, min_size, buffer)

  def sample_target(self, inserts: int) -> float:
    """Returns the number of samples due after `inserts` items."""
    return max(0, inserts - self.min_size) * self.samples_per_insert


# Never blocks once the table has an item.
UNLIMITED = RateLimit(1.0, min_size=1, error_buffer=math.inf)


class NamesOf(dict):
  """Agent-specific names of table settings; others keep their names."""

  def __missing__(self, name: str) -> str:
    return name


class Limiter:
  """Counts inserts and samples, and computes how many more are allowed.

  It implements `RateLimit`, or without one the limits of a queue: inserts wait
  while it is full, and samples while it has too few items. The first `min_size`
  inserts are always allowed, because nothing can be sampled before.

  Attributes:
    inserts: Items ever inserted.
    samples: Items ever sampled.
  """

  def __init__(self, limit: RateLimit | None, max_size: int):
    self.inserts = self.samples = 0
    if limit is None:
      self._min_size, self._ratio = 1, 1.0
      self._least, self._most = 0.0, float(max_size)
    else:
      self._min_size, self._ratio = limit.min_size, limit.samples_per_insert
      middle = limit.samples_per_insert * limit.min_size
      self._least = middle - limit.error_buffer
      self._most = middle + limit.error_buffer

  def may_sample(self, num_samples: int, size: int) -> bool:
    """Returns whether `num_samples` items may be sampled at once.

    `size` items are left in the table when the last of them is drawn.
    """
    error = self.inserts * self._ratio - (self.samples + num_samples)
    return size >= self._min_size and error >= self._least

  def num_insertable(self, at_most: int) -> int:
    """Returns the number of items that may be inserted now, up to `at_most`."""
    if self._may_insert(at_most):
      return at_most
    return next(n for n in range(at_most) if not self._may_insert(n + 1))

  def _may_insert(self, num_items: int) -> bool:
    inserts = self.inserts + num_items
    if inserts <= self._min_size:
      return True
    return inserts * self._ratio - self.samples <= self._most
