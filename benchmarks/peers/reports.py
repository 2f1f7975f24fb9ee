"""Report file from the libraries' scripts to the benchmark."""

import contextlib
import json
import resource
import time


class Report:
  """Writes lines of JSON, and measures the costs of the process."""

  def __init__(self, case):
    """Reads `report`, a path, and `started`, a time of `time.monotonic`."""
    self._path = case['report']
    self._started = case['started']
    self._left_out = 0.0, 0.0

  def write(self, **values):
    """Adds a line."""
    with open(self._path, 'a') as file:
      file.write(json.dumps(values) + '\n')

  def costs(self):
    """Returns processor time and time since the start, in seconds."""
    cpu, wall = _now()
    return {
      'cpu_seconds': cpu - self._left_out[0],
      'seconds': wall - self._started - self._left_out[1],
    }

  @contextlib.contextmanager
  def left_out(self):
    """Excludes the block from the costs."""
    cpu, wall = _now()
    try:
      yield
    finally:
      cpu_after, wall_after = _now()
      self._left_out = (
        self._left_out[0] + cpu_after - cpu,
        self._left_out[1] + wall_after - wall,
      )

  def tell_first_update(self, owner, method):
    """Reports the costs when this method of `storage_lock` first returns."""
    update = getattr(owner, method)

    def first(*args, **kwargs):
      result = update(*args, **kwargs)
      setattr(owner, method, update)
      self.write(first_update=self.costs())
      return result

    setattr(owner, method, first)


def _now():
  usages = map(
    resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
  )
  cpu = sum(usage.ru_utime + usage.ru_stime for usage in usages)
  return cpu, time.monotonic()
