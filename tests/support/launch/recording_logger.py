"""A logger that records its rows."""

from repertory.components import loggers


class RecordingLogger(loggers.Logger):
  """Records rows; raises `error`, if given, after recording each."""

  def __init__(self, error=None):
    self.rows = []
    self.num_closed = 0
    self.error = error

  def write(self, data):
    self.rows.append(dict(data))
    if self.error:
      raise self.error

  def close(self):
    self.num_closed += 1
    if self.error:
      raise self.error
