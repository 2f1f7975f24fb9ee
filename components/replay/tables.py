"""Replay tables, described before they exist.

A description can be checked, printed and compared with a checkpoint before
anything starts; `make` turns it into the Reverb table.
"""

import dataclasses
import functools
from collections.abc import Callable

import reverb

from repertory.components import types
from repertory.components.replay import packing, rate_limiters

DEFAULT_TABLE = 'replay'


@dataclasses.dataclass(frozen=True)
class Table:
  """A replay table.

  Attributes:
    name: Unique among the tables of an agent.
    signature: Nest of `tf.TensorSpec` of one item.
    max_size: Items it holds; then the remover takes one for each new item.
    rate_limit: The ratio of samples to inserts; None makes a queue, in which
      inserts wait while it is full and samples while it is empty.
    sampler: Makes the selector of items to sample.
    remover: Makes the selector of items to remove.
    max_times_sampled: After so many samples an item leaves; 0 for no limit.
  """

  name: str
  signature: types.Nest
  max_size: int
  rate_limit: rate_limiters.RateLimit | None
  sampler: Callable[[], object] = reverb.selectors.Uniform
  remover: Callable[[], object] = reverb.selectors.Fifo
  max_times_sampled: int = 0

  @functools.cached_property
  def packing(self) -> packing.Packing:
    """How its items are stored."""
    return packing.Packing(self.signature)

  def make(self) -> reverb.Table:
    """Builds the Reverb table."""
    return reverb.Table(
      name=self.name,
      sampler=self.sampler(),
      remover=self.remover(),
      max_size=self.max_size,
      max_times_sampled=self.max_times_sampled,
      rate_limiter=(
        self.rate_limit.make()
        if self.rate_limit
        else reverb.rate_limiters.Queue(self.max_size)
      ),
      signature=self.packing.stored_signature,
    )

  def sample_target(self, inserts: int) -> float:
    """Returns the draws that are due after `inserts` items."""
    return (
      self.rate_limit.sample_target(inserts) if self.rate_limit else inserts
    )

  @property
  def min_size(self) -> int:
    """Items it must hold to be sampled from."""
    return self.rate_limit.min_size if self.rate_limit else 1

  def check(self, batch_size: int, items_per_insert: int) -> None:
    """Refuses what could never run; see `rate_limiters.check`."""
    if self.rate_limit:
      rate_limiters.check(
        self.rate_limit,
        table=self.name,
        max_size=self.max_size,
        batch_size=batch_size,
        items_per_insert=items_per_insert,
      )
    elif self.max_size < batch_size + items_per_insert:
      raise ValueError(
        f"Queue '{self.name}' must hold at least batch_size + items per step = "
        f'{batch_size} + {items_per_insert} items, or it could fill up before '
        f'a batch is ready; got max_size = {self.max_size}.'
      )


def uniform(
  signature: types.Nest,
  max_size: int,
  rate_limit: rate_limiters.RateLimit,
  name: str = DEFAULT_TABLE,
) -> Table:
  """Describes a table whose items are all as likely to be sampled."""
  return Table(name, signature, max_size, rate_limit)


def prioritized(
  signature: types.Nest,
  max_size: int,
  rate_limit: rate_limiters.RateLimit,
  priority_exponent: float,
  name: str = DEFAULT_TABLE,
) -> Table:
  """Describes a table that samples item i with probability p_i^α / Σ_j p_j^α.

  Args:
    signature: Nest of `tf.TensorSpec` of one item.
    max_size: Items it holds.
    rate_limit: The ratio of samples to inserts.
    priority_exponent: α, see https://arxiv.org/abs/1511.05952, equation 1.
    name: The table's name.
  """
  if not priority_exponent >= 0:
    raise ValueError(
      f'priority_exponent must be at least 0, got {priority_exponent}.'
    )

  def sampler():
    return reverb.selectors.Prioritized(priority_exponent)

  return Table(name, signature, max_size, rate_limit, sampler=sampler)


def queue(
  signature: types.Nest, max_size: int, name: str = DEFAULT_TABLE
) -> Table:
  """Describes a queue: first in, first out, each item sampled once."""
  return Table(
    name,
    signature,
    max_size,
    rate_limit=None,
    sampler=reverb.selectors.Fifo,
    max_times_sampled=1,
  )
