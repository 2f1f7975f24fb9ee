"""Conversion of table descriptions to Reverb tables."""

import reverb

from repertory.components.replay import rate_limiters, tables

_SELECTORS = {
  'uniform': reverb.selectors.Uniform,
  'fifo': reverb.selectors.Fifo,
  'lifo': reverb.selectors.Lifo,
  'min_heap': reverb.selectors.MinHeap,
  'max_heap': reverb.selectors.MaxHeap,
}


def make_table(table: tables.TableSpec) -> reverb.Table:
  """Creates the Reverb table."""
  max_size = table.max_size // table.bundle_size
  limiter = (
    make_limiter(table.rate_limit)
    if table.rate_limit
    else reverb.rate_limiters.Queue(max_size)
  )
  return reverb.Table(
    name=table.name,
    sampler=(
      reverb.selectors.Prioritized(table.priority_exponent)
      if table.sampler == tables.PRIORITIZED
      else _SELECTORS[table.sampler]()
    ),
    remover=_SELECTORS[table.remover](),
    max_size=max_size,
    max_times_sampled=table.max_times_sampled,
    rate_limiter=limiter,
    signature=table.packing.stored_signature,
  )


def make_limiter(
  limit: rate_limiters.RateLimit,
) -> reverb.rate_limiters.RateLimiter:
  """Creates the Reverb rate limiter."""
  if limit.error_buffer == float('inf'):
    return reverb.rate_limiters.MinSize(limit.min_size)
  return reverb.rate_limiters.SampleToInsertRatio(
    samples_per_insert=limit.samples_per_insert,
    min_size_to_sample=limit.min_size,
    error_buffer=limit.error_buffer,
  )
