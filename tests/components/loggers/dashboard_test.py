"""Tests of Dashboard, on a terminal that keeps what its user would see."""

import dataclasses
import io
import os
import re
import subprocess
import sys
import time

import pytest
import rich.console

from repertory.components import loggers
from repertory.components.loggers import dashboard_view

_STATUS = loggers.Status(
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


class _Screen:
  """Plays the codes that a terminal was sent; unknown ones are an error."""

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


class _Clock:
  def __init__(self):
    self.now = 0.0

  def __call__(self):
    return self.now


@pytest.fixture(name='clock')
def _clock():
  return _Clock()


@pytest.fixture(autouse=True)
def _environment(monkeypatch):
  monkeypatch.setenv('TERM', 'xterm-256color')
  for name in ('NO_COLOR', 'FORCE_COLOR', 'TTY_INTERACTIVE', 'COLUMNS'):
    monkeypatch.delenv(name, raising=False)


def _make_console(width=80, **kwargs):
  return rich.console.Console(
    force_terminal=True, file=io.StringIO(), width=width, height=40, **kwargs
  )


def _draw(status=_STATUS, width=80):
  console = _make_console(width)
  with loggers.Dashboard(console) as dashboard:
    dashboard.update(status)
  return _Screen(console.file.getvalue())


def _change(**kwargs):
  return dataclasses.replace(_STATUS, **kwargs)


def test_all_figures_are_shown():
  text = re.sub(r' +', ' ', _draw().text)
  for expected in (
    'dqn on catch, distributed (threads)',
    ' 61 % ',
    '123 k of 200 k steps',
    '1 h 02 m, 38 m 10 s left',
    'return 0.87 mean of 98',
    'evaluation 0.95 at 120 k steps',
    'episodes 13.7 k',
    'steps/s 1.65 k',
    'updates 31.2 k',
    'updates/s 412',
    'samples/insert 8.02 target 8.50',
    "variables' age 1.23 k updates, 0.4 s",
    '67.0 k of 100 k inserts wait',
    '12 of 64 samples wait',
    '● failed actor/2',
    '● napping evaluator',
    '● running learner, actor ×2',
    'checkpoint 17 written',
  ):
    assert expected in text
  # What demands action comes first.
  states = re.findall('● (\\w+)', text)
  assert states == ['failed', 'napping', 'running']


@pytest.mark.parametrize(
  'width, panel_width', [(50, 50), (80, 80), (90, 90), (200, 100)]
)
def test_panel_fits(width, panel_width):
  screen = _draw(width=width)
  rows = [row for row in screen.rows if row]
  assert {len(row) for row in rows} == {panel_width}
  assert {row[0] + row[-1] for row in rows} == {'╭╮', '││', '╰╯'}
  assert '…' not in screen.text


def test_panel_is_drawn_in_place(clock):
  console = _make_console()
  with loggers.Dashboard(console, clock=clock) as dashboard:
    for i in range(20):
      clock.now += 1
      # The panel grows and shrinks.
      dashboard.update(
        _change(episodes=i, message='\n'.join('message' for _ in range(i % 3)))
      )
      screen = _Screen(console.file.getvalue())
      assert screen.text.count('╭') == 1
      assert screen.rows[-1].startswith('╰')
      assert re.search(rf'episodes +{i} ', screen.text)
  screen = _Screen(console.file.getvalue())
  assert screen.text.count('╭') == 1
  # The shell's prompt goes below the panel.
  assert screen.rows[-1].startswith('╰')
  assert screen.cursor_row == len(screen.rows)


def test_each_drawing_is_one_write(clock):
  # A terminal that is shown between two writes flickers.
  console = _make_console()
  dashboard = loggers.Dashboard(console, clock=clock)
  dashboard.update(_STATUS)
  writes = []
  write = console.file.write
  console.file.write = lambda text: (writes.append(text), write(text))[1]
  clock.now += 1
  dashboard.update(_STATUS)
  assert len(writes) == 1
  dashboard.close()


def test_period(clock):
  console = _make_console()
  dashboard = loggers.Dashboard(console, period_seconds=0.5, clock=clock)
  drawn = []
  for now in (0.0, 0.4, 0.5, 0.6, 0.9, 1.0):
    clock.now = now
    before = console.file.tell()
    dashboard.update(_change(episodes=round(100 * now)))
    drawn.append(console.file.tell() > before)
  assert drawn == [True, False, True, False, False, True]
  dashboard.update(_change(episodes=777))
  dashboard.close()
  screen = _Screen(console.file.getvalue())
  assert re.search('episodes +777', screen.text)


def test_cursor_is_never_left_hidden(clock):
  console = _make_console()
  dashboard = loggers.Dashboard(console, clock=clock)
  for _ in range(3):
    clock.now += 1
    dashboard.update(_STATUS)
    assert _Screen(console.file.getvalue()).cursor_visible
  dashboard.close()
  assert _Screen(console.file.getvalue()).cursor_visible


def test_printed_text_stays_above_the_panel(clock):
  console = _make_console()
  with loggers.Dashboard(console, clock=clock) as dashboard:
    dashboard.update(_STATUS)
    print('one')
    print('two', file=sys.stderr)
    clock.now += 1
    dashboard.update(_STATUS)
  screen = _Screen(console.file.getvalue())
  assert screen.rows[:3] == ['one', 'two', screen.rows[2]]
  assert screen.rows[2].startswith('╭')
  assert screen.text.count('╭') == 1


def test_exception_gives_the_terminal_back(clock):
  console = _make_console()
  streams = sys.stdout, sys.stderr
  dashboard = loggers.Dashboard(console, clock=clock)
  with pytest.raises(KeyError, match='broken'), dashboard:
    dashboard.update(_STATUS)
    assert sys.stdout is not streams[0]
    dashboard.update(_change(episodes=777))
    raise KeyError('broken')
  assert (sys.stdout, sys.stderr) == streams
  screen = _Screen(console.file.getvalue())
  assert screen.cursor_visible
  assert re.search('episodes +777', screen.text)


@pytest.mark.parametrize('first', [True, False])
def test_status_that_cannot_be_drawn_gives_the_terminal_back(clock, first):
  console = _make_console()
  streams = sys.stdout, sys.stderr
  with (
    pytest.raises(TypeError),
    loggers.Dashboard(console, clock=clock) as dashboard,
  ):
    if not first:
      dashboard.update(_STATUS)
    clock.now += 1
    dashboard.update(_change(steps='many'))
  assert (sys.stdout, sys.stderr) == streams
  assert _Screen(console.file.getvalue()).cursor_visible


def test_what_is_unknown_is_not_shown():
  screen = _draw(loggers.Status(title='new'))
  assert '0 steps' in screen.text
  for absent in ('None', '%', 'return', 'evaluation', 'insert', 'age', 'left'):
    assert absent not in screen.text
  for absent in ('replay', '●'):
    assert absent not in screen.text


@pytest.mark.parametrize(
  'steps, percent',
  [(0, '0 %'), (199_999, '99 %'), (200_000, '100 %'), (200_123, '100 %')],
)
def test_percentage(steps, percent):
  assert f' {percent} ' in _draw(_change(steps=steps)).text


def test_progress_bar_grows():
  # Without colors the rest of the bar is left blank.
  console = _make_console(color_system=None)
  filled = []
  for steps in (0, 100_000, 200_000):
    console.file.seek(0)
    console.file.truncate()
    with loggers.Dashboard(console) as dashboard:
      dashboard.update(_change(steps=steps, tables=()))
    filled.append(_Screen(console.file.getvalue()).text.count('━'))
  assert filled[0] == 0
  assert filled[2] > 60
  assert abs(filled[1] - filled[2] / 2) <= 1


def test_brackets_are_text_not_markup():
  screen = _draw(
    _change(
      title='[bold]title[/bold]',
      tables=(loggers.TableStatus('[red]', 1, 2),),
      nodes=(('[a]', '[b]'),),
      message='[/c]',
    )
  )
  for expected in ('[bold]title[/bold]', '[red]', '[a]', '● [b]', '[/c]'):
    assert expected in screen.text


def test_curve_of_returns(clock):
  console = _make_console()
  with loggers.Dashboard(console, clock=clock) as dashboard:
    for value in (None, -1.0, float('nan'), 0.0, 1.0):
      clock.now += 1
      dashboard.update(_change(mean_return=value))
  assert 'return  -1.00 ▁▅█ 1.00' in _Screen(console.file.getvalue()).text


@pytest.mark.parametrize('num', [60, 100, 512])
@pytest.mark.parametrize('width', [40, 80])
def test_long_curve_fills_the_panel(num, width):
  console = _make_console(width)
  returns = [-1234.5 + i % 7 for i in range(num)]
  console.print(dashboard_view.StatusView(_STATUS, returns))
  rows = [row for row in _Screen(console.file.getvalue()).rows if row]
  assert {len(row) for row in rows} == {width}
  (curve,) = [row for row in rows if '▁' in row]
  rest = len('│ return  -1.23 k  -1.23 k │')
  assert len(re.findall('[▁-█]', curve)) == width - rest


def test_ascii_terminal():
  file = io.TextIOWrapper(io.BytesIO(), encoding='ascii')
  console = rich.console.Console(force_terminal=True, file=file, width=80)
  with loggers.Dashboard(console, period_seconds=0) as dashboard:
    for value in (0.0, 1.0):
      dashboard.update(_change(mean_return=value))
  file.seek(0)
  text = _Screen(file.read()).text
  assert '* running' in text
  assert 'actor x2' in text
  assert '_@ ' in text


def _make_plain(clock, **kwargs):
  console = rich.console.Console(file=io.StringIO(), width=80, **kwargs)
  return console, loggers.Dashboard(console, clock=clock)


def test_plain_lines(clock):
  console, dashboard = _make_plain(clock)
  with dashboard:
    for now in (0, 1, 4.9, 5, 9.9, 10.5, 11):
      clock.now = now
      dashboard.update(_change(episodes=round(10 * now)))
  lines = console.file.getvalue().splitlines()
  # At 0, 5 and 10.5, and the last one at close.
  found = [re.search(r'episodes=(\d+) ', line).group(1) for line in lines]
  assert found == ['0', '50', '105', '110']


def test_plain_figures(clock):
  console, dashboard = _make_plain(clock)
  dashboard.update(_STATUS)
  sent = console.file.getvalue()
  assert '\x1b' not in sent
  title, colon, line = sent.partition(': ')
  assert (title, colon) == ('dqn on catch, distributed (threads)', ': ')
  assert line == (
    'elapsed_seconds=3723.0 seconds_left=2290.0 steps=123400 '
    'max_steps=200000 steps_per_second=1652.3 episodes=13720 '
    'mean_return=0.871 num_returns=98 evaluation_return=0.95 '
    'evaluation_steps=120000 learner_steps=31250 '
    'learner_steps_per_second=412.2 samples_per_insert=8.02 '
    'target_samples_per_insert=8.5 variables_age_steps=1234.0 '
    'variables_age_seconds=0.41 priority_table.size=67012 '
    'priority_table.max_size=100000 priority_table.blocked=insert '
    'queue.size=12 queue.max_size=64 queue.blocked=sample '
    'nodes.failed=1 nodes.napping=1 nodes.running=3 '
    'message="checkpoint 17 written"\n'
  )
  dashboard.close()


def test_plain_line_without_unknowns(clock):
  console, dashboard = _make_plain(clock)
  dashboard.update(loggers.Status(title='[new]', message='a\n[b]'))
  line = console.file.getvalue()
  assert line.startswith('[new]: elapsed_seconds=0 steps=0 ')
  assert line.endswith('message="a\\n[b]"\n')
  assert 'None' not in line
  dashboard.close()


def test_last_plain_line_even_on_exceptions(clock):
  console, dashboard = _make_plain(clock)
  with pytest.raises(KeyError, match='broken'), dashboard:
    dashboard.update(_STATUS)
    dashboard.update(_change(episodes=777))
    raise KeyError('broken')
  assert 'episodes=777' in console.file.getvalue().splitlines()[-1]


def test_terminal_without_cursor_control_gets_lines(clock, monkeypatch):
  monkeypatch.setenv('TERM', 'dumb')
  console, dashboard = _make_plain(clock, force_terminal=True)
  with dashboard:
    dashboard.update(_STATUS)
  assert console.file.getvalue().count('steps=123400') == 2
  assert '╭' not in console.file.getvalue()


@pytest.mark.parametrize('force_terminal', [True, False])
def test_close(force_terminal, clock):
  console = rich.console.Console(
    file=io.StringIO(), force_terminal=force_terminal, width=80, height=40
  )
  dashboard = loggers.Dashboard(console, clock=clock)
  dashboard.update(_STATUS)
  dashboard.close()
  sent = console.file.getvalue()
  dashboard.close()
  assert console.file.getvalue() == sent
  with pytest.raises(ValueError, match=r'after close'):
    dashboard.update(_STATUS)


def test_nothing_is_shown_before_the_first_update():
  console = _make_console()
  loggers.Dashboard(console).close()
  assert console.file.getvalue() == ''


@pytest.mark.parametrize('name', ['period_seconds', 'plain_period_seconds'])
def test_periods_are_checked(name):
  with pytest.raises(ValueError, match=rf'{name}: expected .* found -1'):
    loggers.Dashboard(**{name: -1})


def test_blocked_side_is_checked():
  with pytest.raises(ValueError, match=r"blocked: expected .* found 'both'"):
    loggers.TableStatus('table', 1, 2, 'both')


_FORGETFUL = """
import sys
from repertory.components import loggers
dashboard = loggers.Dashboard(period_seconds=60)
dashboard.update(loggers.Status(title='run', episodes=1))
dashboard.update(loggers.Status(title='run', episodes=777))
print('last words')
raise SystemExit(3)
"""


def _run_on_terminal(code, seconds):
  """Runs Python on a terminal of its own; returns what it sent and its end."""
  ours, theirs = os.openpty()
  try:
    process = subprocess.Popen(
      [sys.executable, '-c', code],
      stdin=theirs,
      stdout=theirs,
      stderr=subprocess.DEVNULL,
      env={**os.environ, 'COLUMNS': '80', 'LINES': '40'},
    )
  finally:
    os.close(theirs)
  sent = b''
  os.set_blocking(ours, False)
  deadline = time.monotonic() + seconds
  try:
    while time.monotonic() < deadline:
      try:
        piece = os.read(ours, 65536)
      except BlockingIOError:
        time.sleep(0.01)
        continue
      except OSError:  # The other end is closed.
        break
      sent += piece
    return sent.decode(), process.wait(timeout=seconds)
  finally:
    process.kill()
    process.wait(timeout=seconds)
    os.close(ours)


def test_forgotten_display_is_closed_at_exit():
  sent, exit_code = _run_on_terminal(_FORGETFUL, seconds=60)
  assert exit_code == 3
  screen = _Screen(sent)
  assert screen.cursor_visible
  assert screen.rows[0] == 'last words'
  assert screen.text.count('╭') == 1
  assert re.search('episodes +777', screen.text)
