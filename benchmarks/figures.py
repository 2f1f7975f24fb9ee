"""What several benchmarks tell."""

import resource
import statistics
import time
from collections.abc import Sequence

_OF_A_PROCESS = 2  # CPUCLOCK_SCHED.


def children_seconds() -> float:
  """Returns the processor time of all processes that were started and ended."""
  usage = resource.getrusage(resource.RUSAGE_CHILDREN)
  return usage.ru_utime + usage.ru_stime


def processor_seconds(pid: int) -> float:
  """Returns the processor time of a process, of all its threads.

  To the nanosecond, where /proc counts in hundredths of a second.
  """
  # Linux names the clock so: clock_getcpuclockid(3).
  return time.clock_gettime(~pid << 3 | _OF_A_PROCESS)


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
