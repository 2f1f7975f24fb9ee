"""Callbacks and loggers that record their calls."""

import threading

from repertory import launch


class Callback(launch.Callback):
  """Callback that records all calls."""

  def __init__(self, fails_at='', error=None):
    self.calls = []
    self._fails_at = fails_at
    self._error = error or ValueError('no more')

  def names(self):
    return [name for name, _ in self.calls]

  def all_of(self, name):
    return [arguments for one, arguments in self.calls if one == name]

  def _note(self, name, arguments):
    self.calls.append((name, arguments))
    if name == self._fails_at:
      raise self._error

  def on_start(self, run):
    self._note('on_start', run)

  def on_episodes(self, episodes):
    self._note('on_episodes', episodes)

  def on_learner_row(self, row):
    self._note('on_learner_row', row)

  def on_evaluation(self, evaluation):
    self._note('on_evaluation', evaluation)

  def on_end(self, end):
    self._note('on_end', end)


class Logger(launch.RowLogger):
  """Logger that records all rows."""

  def __init__(self, fails_at=''):
    self.runs, self.rows, self.ends = [], [], []
    self._fails_at = fails_at

  def _fail(self, name):
    if name == self._fails_at:
      raise OSError(f'no network at {name} {len(self.rows)}')

  def start(self, run):
    self.runs.append(run)
    self._fail('start')

  def write(self, label, row):
    self.rows.append((label, row))
    self._fail('write')

  def close(self, end):
    self.ends.append(end)
    self._fail('close')


class Stuck(launch.Callback):
  """Callback that blocks until it is released."""

  def __init__(self, at):
    self.is_in, self.released = threading.Event(), threading.Event()
    setattr(self, at, self._wait)

  def _wait(self, arguments):
    del arguments
    self.is_in.set()
    self.released.wait(60)
