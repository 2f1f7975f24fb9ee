"""Tests of what a dashboard draws, on a terminal that keeps all it is sent."""

import io
import re

import dashboard_fakes
import pytest
import rich.console

from repertory.components import loggers
from repertory.components.loggers import dashboard_drawing


@pytest.fixture(autouse=True)
def _environment(monkeypatch):
  dashboard_fakes.set_terminal(monkeypatch)


def _make_plain(**kwargs):
  console = rich.console.Console(file=io.StringIO(), width=80, **kwargs)
  return console, dashboard_drawing.Drawing(console)


def test_panel_is_drawn_in_place():
  console = dashboard_fakes.make_console()
  drawing = dashboard_drawing.Drawing(console)
  for i in range(20):
    # The panel grows and shrinks.
    message = '\n'.join('message' for _ in range(i % 3))
    drawing.draw(dashboard_fakes.change(episodes=i, message=message))
    screen = dashboard_fakes.read_screen(console)
    assert screen.text.count('╭') == 1
    assert screen.rows[-1].startswith('╰')
    assert re.search(rf'episodes +{i} ', screen.text)
  drawing.finish(dashboard_fakes.change(episodes=777))
  screen = dashboard_fakes.read_screen(console)
  assert screen.text.count('╭') == 1
  assert re.search('episodes +777 ', screen.text)
  # The shell's prompt goes below the panel.
  assert screen.rows[-1].startswith('╰')
  assert screen.cursor_row == len(screen.rows)


def test_first_may_be_the_last():
  console = dashboard_fakes.make_console()
  dashboard_drawing.Drawing(console).finish(dashboard_fakes.STATUS)
  screen = dashboard_fakes.read_screen(console)
  assert screen.text.count('╭') == 1
  assert screen.cursor_row == len(screen.rows)


def test_each_drawing_is_one_write(monkeypatch):
  # A terminal that is shown between two writes flickers.
  console = dashboard_fakes.make_console()
  drawing = dashboard_drawing.Drawing(console)
  drawing.draw(dashboard_fakes.STATUS)
  writes = []
  write = console.file.write

  def count_and_write(text):
    writes.append(text)
    return write(text)

  monkeypatch.setattr(console.file, 'write', count_and_write)
  drawing.draw(dashboard_fakes.STATUS)
  assert len(writes) == 1


def test_cursor_is_never_left_hidden():
  console = dashboard_fakes.make_console()
  drawing = dashboard_drawing.Drawing(console)
  for _ in range(3):
    drawing.draw(dashboard_fakes.STATUS)
    assert dashboard_fakes.read_screen(console).cursor_visible
  drawing.finish(dashboard_fakes.STATUS)
  assert dashboard_fakes.read_screen(console).cursor_visible


def test_prints_of_others_stay_above_the_panel():
  console = dashboard_fakes.make_console()
  drawing = dashboard_drawing.Drawing(console)
  drawing.draw(dashboard_fakes.STATUS)
  drawing.print(['one', '\x1b[1mtwo\x1b[0m', '[three]'])
  drawing.draw(dashboard_fakes.STATUS)
  screen = dashboard_fakes.read_screen(console)
  assert screen.rows[:3] == ['one', 'two', '[three]']
  assert screen.rows[3].startswith('╭')
  assert screen.text.count('╭') == 1


def test_curve_of_returns():
  console = dashboard_fakes.make_console()
  returns = (-1.0, float('nan'), 0.0, 1.0)
  dashboard_drawing.Drawing(console).draw(dashboard_fakes.STATUS, returns)
  assert 'return  -1.00 ▁▅█ 1.00' in dashboard_fakes.read_screen(console).text


def test_ascii_terminal():
  file = io.TextIOWrapper(io.BytesIO(), encoding='ascii')
  console = rich.console.Console(force_terminal=True, file=file, width=80)
  dashboard_drawing.Drawing(console).draw(dashboard_fakes.STATUS, (0.0, 1.0))
  file.seek(0)
  text = dashboard_fakes.Screen(file.read()).text
  assert '* running' in text
  assert 'actor x2' in text
  assert '_@ ' in text


def test_plain_figures():
  console, drawing = _make_plain()
  drawing.draw(dashboard_fakes.STATUS)
  sent = dashboard_fakes.read_sent(console)
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


def test_plain_line_without_unknowns():
  console, drawing = _make_plain()
  drawing.draw(loggers.Status(title='[new]', message='a\n[b]'))
  line = dashboard_fakes.read_sent(console)
  assert line.startswith('[new]: elapsed_seconds=0 steps=0 ')
  assert line.endswith('message="a\\n[b]"\n')
  assert 'None' not in line


def test_terminal_without_cursor_control_gets_lines(monkeypatch):
  monkeypatch.setenv('TERM', 'dumb')
  console, drawing = _make_plain(force_terminal=True)
  drawing.draw(dashboard_fakes.STATUS)
  drawing.finish(dashboard_fakes.STATUS)
  assert dashboard_fakes.read_sent(console).count('steps=123400') == 2
  assert '╭' not in dashboard_fakes.read_sent(console)
