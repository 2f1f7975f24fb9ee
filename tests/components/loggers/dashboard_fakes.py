"""Fakes for tests of the dashboard: a run, a terminal and a clock."""

import dataclasses
import io
import re
import threading
import time

import rich.console

from repertory.components import loggers
from repertory.components.loggers import dashboard_thread

STATUS = loggers.Status(
  title='dqn on catch, distributed (threads)',
  steps=123_400,
  max_steps=200_000,
  episodes=13_720,
  mean_return=0.871,
  num_returns=98,
  steps_per_second=1652.3,
  learner_steps=31_250,
  learner_steps_per_second=412.2,
  samples_per_insert=8.02,
  target_samples_per_insert=8.5,
  tables=(
    loggers.TableStatus('priority_table', 67_012, 100_000, 'insert'),
    loggers.TableStatus('queue', 12, 64, 'sample'),
  ),
  variables_age_steps=1234.0,
  variables_age_seconds=0.41,
  targets_per_second=5_120.0,
  target_age_steps=21.4,
  evaluation_return=0.95,
  evaluation_steps=120_000,
  elapsed_seconds=3723.0,
  seconds_left=2290.0,
  nodes=(
    ('learner', 'running'),
    ('actor/0', 'running'),
    ('actor/1', 'running'),
    ('actor/2', 'failed'),
    ('evaluator', 'napping'),
  ),
  message='checkpoint 17 written',
)

_TOKEN = re.compile(r'\x1b\[([?0-9;]*)([A-Za-z])|(\r)|(\n)|([^\x1b\r\n]+)')


class Screen:
  """Interprets terminal codes; unknown ones are an error."""

  def __init__(self, sent):
    self.rows = ['']
    self.cursor_visible = True
    row = column = 0
    for argument, code, carriage_return, line_feed, text in _TOKEN.findall(
      sent
    ):
      if carriage_return:
        column = 0
      elif line_feed:
        row, column = row + 1, 0
        self.rows += [''] * (row + 1 - len(self.rows))
      elif text:
        old = self.rows[row].ljust(column)
        self.rows[row] = old[:column] + text + old[column + len(text) :]
        column += len(text)
      elif code == 'A':
        row -= int(argument)
        assert row >= 0
      elif code == 'K' and argument == '2':
        self.rows[row] = ''
      elif code in 'hl' and argument == '?25':
        self.cursor_visible = code == 'h'
      else:
        assert code == 'm', f'unknown code {argument}{code}'
    self.cursor_row = row
    while self.rows and not self.rows[-1]:
      self.rows.pop()
    self.text = '\n'.join(self.rows)


class Clock:
  """A clock that stands still until `now` is set."""

  def __init__(self):
    self.now = 0.0

  def __call__(self):
    return self.now


def make_console(width=80, **kwargs):
  """Creates a terminal of 40 lines."""
  return rich.console.Console(
    force_terminal=True, file=io.StringIO(), width=width, height=40, **kwargs
  )


def find_numbers(sent):
  """Returns a number of each drawing: of episodes, or in lines of steps."""
  return [
    int((one or other).replace(',', ''))
    for one, other in re.findall(r'episodes +(\d+)|([\d,]+) of 200,000', sent)
  ]


def read_sent(console):
  """Returns all text written to a terminal."""
  assert isinstance(console.file, io.StringIO)
  return console.file.getvalue()


def read_screen(console):
  """Returns the visible text of a terminal."""
  return Screen(read_sent(console))


def change(**kwargs):
  """Returns the status with other numbers."""
  return dataclasses.replace(STATUS, **kwargs)


def set_terminal(monkeypatch):
  """Makes drawing independent of the environment."""
  monkeypatch.setenv('TERM', 'xterm-256color')
  for name in ('NO_COLOR', 'FORCE_COLOR', 'TTY_INTERACTIVE', 'COLUMNS'):
    monkeypatch.delenv(name, raising=False)
  # The clock's ticks are tested separately.
  monkeypatch.setattr(dashboard_thread, '_TICK_SECONDS', 3600.0)


def wait_until(condition, seconds=30):
  """Waits for a condition of a thread, and fails on time-out."""
  deadline = time.monotonic() + seconds
  while not condition():
    assert time.monotonic() < deadline
    time.sleep(0.001)


def drawing_threads():
  """Returns the threads of dashboards."""
  return [t for t in threading.enumerate() if t.name == 'dashboard']
