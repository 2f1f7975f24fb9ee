"""What several benchmarks tell."""

import resource
import statistics
from collections.abc import Sequence


def children_seconds() -> float:
  """Returns the processor time of all processes that were started and ended."""
  usage = resource.getrusage(resource.RUSAGE_CHILDREN)
  return usage.ru_utime + usage.ru_stime


def spread(values: Sequence[float], digits: int) -> str:
  """Returns the median, with the least and the largest.

  Args:
    digits: Behind the point.
  """
  middle, least, most = (
    f'{value:,.{digits}f}'
    for value in (statistics.median(values), min(values), max(values))
  )
  return f'{middle} ({least} to {most})'
