"""Statistics and clocks shared by several benchmarks."""

import resource
import statistics
import time
from collections.abc import Sequence

_OF_A_PROCESS = 2  # CPUCLOCK_SCHED.


def children_seconds() -> float:
  """Returns the processor time of all children that have ended."""
  usage = resource.getrusage(resource.RUSAGE_CHILDREN)
  return usage.ru_utime + usage.ru_stime


def processor_seconds(pid: int) -> float:
  """Returns the processor time of a process, over all its threads.

  In nanoseconds, while /proc counts in hundredths of a second.
  """
  # The id of the clock on Linux: clock_getcpuclockid(3).
  return time.clock_gettime(~pid << 3 | _OF_A_PROCESS)


def spread(values: Sequence[float], digits: int) -> str:
  """Returns the median, with minimum and maximum.

  Args:
    digits: Number of decimal places.
  """
  middle, least, most = (
    f'{value:,.{digits}f}'
    for value in (statistics.median(values), min(values), max(values))
  )
  return f'{middle} ({least} to {most})'
