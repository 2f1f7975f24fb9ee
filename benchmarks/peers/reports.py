"""Report file from the libraries' scripts to the benchmark."""

import json
import resource
import time


class Report:
  """Writes lines of JSON."""

  def __init__(self, case):
    """Reads `report`, a path, and `started`, a time of `time.monotonic`."""
    self._path = case['report']
    self._started = case['started']

  def write(self, **values):
    """Adds a line."""
    with open(self._path, 'a') as file:
      file.write(json.dumps(values) + '\n')

  def report_first_update(self, owner, method):
    """Reports the costs when a method of `owner` first returns."""
    update = getattr(owner, method)

    def first(*args, **kwargs):
      result = update(*args, **kwargs)
      setattr(owner, method, update)
      usages = map(
        resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
      )
      cpu = sum(usage.ru_utime + usage.ru_stime for usage in usages)
      seconds = time.monotonic() - self._started
      self.write(first_update={'cpu_seconds': cpu, 'seconds': seconds})
      return result

    setattr(owner, method, first)
