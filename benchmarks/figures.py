"""Statistics, clocks and the processor, shared by several benchmarks."""

import pathlib
import platform
import re
import resource
import statistics
import time
from collections.abc import Sequence

_OF_A_PROCESS = 2  # CPUCLOCK_SCHED.
# Names of vector instructions in /proc/cpuinfo, the widest first.
_VECTORS = ('avx512f', 'avx2', 'avx', 'sse2', 'sve', 'asimd')


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


def processor() -> str:
  """Returns the model of the processor and its widest vector instructions."""
  text = pathlib.Path('/proc/cpuinfo').read_text()
  found = dict(re.findall(r'^([\w ]+?)\s*: (.*)$', text, re.MULTILINE))
  flags = found.get('flags', found.get('Features', '')).split()
  widest = next((name for name in _VECTORS if name in flags), 'no vectors')
  return f'{found.get("model name", platform.machine())}, {widest}'


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
