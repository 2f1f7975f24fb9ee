"""Report file from the libraries' scripts to the benchmark."""

import contextlib
import glob
import json
import os
import re
import time

import numpy as np

# Readings of the training return, and the share of the steps each is over.
_READINGS, _WINDOW = 100, 0.05


def _measure_tree(root):
  """Returns the costs of a process and its descendants, ended ones included.

  Returns:
    Processor time in seconds, and memory (PSS) in MiB.
  """
  parents, seconds, mebibytes = {}, {}, 0.0
  for path in glob.glob('/proc/[0-9]*'):
    with contextlib.suppress(OSError):
      with open(f'{path}/stat') as file:
        # The name, in parentheses, may contain spaces.
        fields = file.read().rpartition(')')[2].split()
      pid = int(os.path.basename(path))
      parents[pid] = int(fields[1])
      seconds[pid] = sum(map(int, fields[11:15])) / os.sysconf('SC_CLK_TCK')
  tree = {root}
  while new := {pid for pid, one in parents.items() if one in tree} - tree:
    tree |= new
  for pid in tree:
    with (
      contextlib.suppress(OSError),
      open(f'/proc/{pid}/smaps_rollup') as file,
    ):
      found = re.search(r'^Pss: +(\d+) kB', file.read(), re.MULTILINE)
      mebibytes += int(found[1]) / 2**10
  return sum(seconds[pid] for pid in tree), mebibytes


class Report:
  """Writes lines of JSON. Processes of a run may have copies."""

  def __init__(self, case):
    """Reads `report`, a path, and `started`, a time of `time.monotonic`."""
    self._path = case['report']
    self._started = case['started']
    self._root = os.getpid()
    self._evaluations = []

  def write(self, **values):
    """Adds a line."""
    with open(self._path, 'a') as file:
      file.write(json.dumps(values) + '\n')

  def add_evaluation(self, steps, mean_return):
    """Reports an evaluation, with the processor time of the run so far."""
    self._evaluations.append((steps, float(mean_return), self.cpu_seconds()))
    self.write(evaluations=self._evaluations)

  def cpu_seconds(self):
    """Returns the processor time of the run so far."""
    return _measure_tree(self._root)[0]

  def write_training_returns(self, ends, returns, times):
    """Reports mean returns of training after each percent of the steps.

    Each is over the episodes that ended in the latest 5 % of the steps. The
    returns of the last ones are reported, too.

    Args:
      ends: Environment steps of the run at the end of each episode. [K]
      returns: Return of each episode. [K]
      times: Pairs of environment steps and processor seconds, in order; between
        them, processor time is interpolated.
    """
    ends, returns = np.asarray(ends), np.asarray(returns)
    steps = times[-1][0]
    readings, latest = [], returns[:0]
    for end in np.linspace(0, steps, _READINGS + 1)[1:]:
      latest = returns[(ends > end - _WINDOW * steps) & (ends <= end)]
      if len(latest):
        cpu_seconds = np.interp(end, *zip(*times))
        readings.append((int(end), float(latest.mean()), float(cpu_seconds)))
    self.write(evaluations=readings, returns=latest.tolist())

  def report_first_update(self, owner, method):
    """Reports the costs when a method of `owner` first returns."""
    update = getattr(owner, method)

    def first(*args, **kwargs):
      result = update(*args, **kwargs)
      setattr(owner, method, update)
      seconds = time.monotonic() - self._started
      cpu_seconds, mebibytes = _measure_tree(self._root)
      self.write(first_update=(cpu_seconds, seconds, mebibytes))
      return result

    setattr(owner, method, first)
