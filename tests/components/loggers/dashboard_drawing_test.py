"""Tests of the dashboard's drawings, on a terminal that records its input."""

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


def test_plain_line():
  console, drawing = _make_plain()
  drawing.draw(dashboard_fakes.STATUS)
  sent = dashboard_fakes.read_sent(console)
  assert '\x1b' not in sent
  assert sent == (
    'dqn on catch, distributed (threads): 123,400 of 200,000 steps, '
    'return 0.871, evaluation 0.95, 1,650 steps/s, 38 m 10 s left; '
    'checkpoint 17 written\n'
  )


def test_plain_lines_do_not_repeat_themselves():
  console, drawing = _make_plain()
  drawing.draw(loggers.Status(title='[new]', message='a\n[b]'))
  drawing.draw(loggers.Status(title='[new]', steps=1_234, message='a\n[b]'))
  drawing.draw(loggers.Status(title='[new]', num_restarts=2, message='c'))
  drawing.finish(loggers.Status(title='[new]', elapsed_seconds=62))
  assert dashboard_fakes.read_sent(console).splitlines() == [
    '[new]: 0 steps; a [b]',
    '1,234 steps',
    '0 steps, 2 restarts; c',
    '0 steps, after 1 m 02 s',
  ]


def test_plain_line_of_a_start():
  console, drawing = _make_plain()
  starts = (
    loggers.NodeStart('actor/0', 'importing', 1.0),
    loggers.NodeStart('actor/1', 'importing', 3.0),
    loggers.NodeStart('learner', 'compiling its update', 1.0),
    loggers.NodeStart('replay', '', 4.0),
  )
  status = loggers.Status(title='new', elapsed_seconds=13.0, starts=starts)
  drawing.draw(status)
  # Of several with the same activity, the longest.
  assert dashboard_fakes.read_sent(console) == (
    'new: 0 steps, starting: actor x2: importing, 12 s; '
    'learner: compiling its update, 12 s; replay: 9.0 s\n'
  )


def test_terminal_without_cursor_control_gets_lines(monkeypatch):
  monkeypatch.setenv('TERM', 'dumb')
  console, drawing = _make_plain(force_terminal=True)
  drawing.draw(dashboard_fakes.STATUS)
  drawing.finish(dashboard_fakes.STATUS)
  assert dashboard_fakes.read_sent(console).count('123,400 of') == 2
  assert '╭' not in dashboard_fakes.read_sent(console)
