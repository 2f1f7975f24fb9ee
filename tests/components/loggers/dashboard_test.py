"""Tests of Dashboard on a terminal that keeps what its user would see."""

import io
import re
import sys
from typing import Any

import dashboard_fakes
import pytest
import rich.console

from repertory.components import loggers


@pytest.fixture(name='clock')
def _clock():
  return dashboard_fakes.Clock()


@pytest.fixture(autouse=True)
def _environment(monkeypatch):
  monkeypatch.setenv('TERM', 'xterm-256color')
  for name in ('NO_COLOR', 'FORCE_COLOR', 'TTY_INTERACTIVE', 'COLUMNS'):
    monkeypatch.delenv(name, raising=False)


def test_panel_is_drawn_in_place(clock):
  console = dashboard_fakes.make_console()
  with loggers.Dashboard(console, clock=clock) as dashboard:
    for i in range(20):
      clock.now += 1
      # The panel grows and shrinks.
      dashboard.update(
        dashboard_fakes.change(
          episodes=i, message='\n'.join('message' for _ in range(i % 3))
        )
      )
      screen = dashboard_fakes.read_screen(console)
      assert screen.text.count('╭') == 1
      assert screen.rows[-1].startswith('╰')
      assert re.search(rf'episodes +{i} ', screen.text)
  screen = dashboard_fakes.read_screen(console)
  assert screen.text.count('╭') == 1
  # The shell's prompt goes below the panel.
  assert screen.rows[-1].startswith('╰')
  assert screen.cursor_row == len(screen.rows)


def test_each_drawing_is_one_write(clock, monkeypatch):
  # A terminal that is shown between two writes flickers.
  console = dashboard_fakes.make_console()
  dashboard = loggers.Dashboard(console, clock=clock)
  dashboard.update(dashboard_fakes.STATUS)
  writes = []
  write = console.file.write

  def count_and_write(text):
    writes.append(text)
    return write(text)

  monkeypatch.setattr(console.file, 'write', count_and_write)
  clock.now += 1
  dashboard.update(dashboard_fakes.STATUS)
  assert len(writes) == 1
  dashboard.close()


def test_period(clock):
  console = dashboard_fakes.make_console()
  dashboard = loggers.Dashboard(console, period_seconds=0.5, clock=clock)
  drawn = []
  for now in (0.0, 0.4, 0.5, 0.6, 0.9, 1.0):
    clock.now = now
    before = len(dashboard_fakes.read_sent(console))
    dashboard.update(dashboard_fakes.change(episodes=round(100 * now)))
    drawn.append(len(dashboard_fakes.read_sent(console)) > before)
  assert drawn == [True, False, True, False, False, True]
  dashboard.update(dashboard_fakes.change(episodes=777))
  dashboard.close()
  screen = dashboard_fakes.read_screen(console)
  assert re.search('episodes +777', screen.text)


def test_cursor_is_never_left_hidden(clock):
  console = dashboard_fakes.make_console()
  dashboard = loggers.Dashboard(console, clock=clock)
  for _ in range(3):
    clock.now += 1
    dashboard.update(dashboard_fakes.STATUS)
    assert dashboard_fakes.read_screen(console).cursor_visible
  dashboard.close()
  assert dashboard_fakes.read_screen(console).cursor_visible


def test_printed_text_stays_above_the_panel(clock):
  console = dashboard_fakes.make_console()
  with loggers.Dashboard(console, clock=clock) as dashboard:
    dashboard.update(dashboard_fakes.STATUS)
    print('one')
    print('two', file=sys.stderr)
    clock.now += 1
    dashboard.update(dashboard_fakes.STATUS)
  screen = dashboard_fakes.read_screen(console)
  assert screen.rows[:3] == ['one', 'two', screen.rows[2]]
  assert screen.rows[2].startswith('╭')
  assert screen.text.count('╭') == 1


def test_exception_gives_the_terminal_back(clock):
  console = dashboard_fakes.make_console()
  streams = sys.stdout, sys.stderr
  dashboard = loggers.Dashboard(console, clock=clock)
  with pytest.raises(KeyError, match='broken'), dashboard:
    dashboard.update(dashboard_fakes.STATUS)
    assert sys.stdout is not streams[0]
    dashboard.update(dashboard_fakes.change(episodes=777))
    raise KeyError('broken')
  assert (sys.stdout, sys.stderr) == streams
  screen = dashboard_fakes.read_screen(console)
  assert screen.cursor_visible
  assert re.search('episodes +777', screen.text)


@pytest.mark.parametrize('first', [True, False])
def test_status_that_cannot_be_drawn_gives_the_terminal_back(clock, first):
  console = dashboard_fakes.make_console()
  streams = sys.stdout, sys.stderr
  with (
    pytest.raises(TypeError),
    loggers.Dashboard(console, clock=clock) as dashboard,
  ):
    if not first:
      dashboard.update(dashboard_fakes.STATUS)
    clock.now += 1
    dashboard.update(dashboard_fakes.change(steps='many'))
  assert (sys.stdout, sys.stderr) == streams
  assert dashboard_fakes.read_screen(console).cursor_visible


def test_curve_of_returns(clock):
  console = dashboard_fakes.make_console()
  with loggers.Dashboard(console, clock=clock) as dashboard:
    for value in (None, -1.0, float('nan'), 0.0, 1.0):
      clock.now += 1
      dashboard.update(dashboard_fakes.change(mean_return=value))
  assert 'return  -1.00 ▁▅█ 1.00' in dashboard_fakes.read_screen(console).text


def test_ascii_terminal():
  file = io.TextIOWrapper(io.BytesIO(), encoding='ascii')
  console = rich.console.Console(force_terminal=True, file=file, width=80)
  with loggers.Dashboard(console, period_seconds=0) as dashboard:
    for value in (0.0, 1.0):
      dashboard.update(dashboard_fakes.change(mean_return=value))
  file.seek(0)
  text = dashboard_fakes.Screen(file.read()).text
  assert '* running' in text
  assert 'actor x2' in text
  assert '_@ ' in text


@pytest.mark.parametrize('force_terminal', [True, False])
def test_close(force_terminal, clock):
  console = rich.console.Console(
    file=io.StringIO(), force_terminal=force_terminal, width=80, height=40
  )
  dashboard = loggers.Dashboard(console, clock=clock)
  dashboard.update(dashboard_fakes.STATUS)
  dashboard.close()
  sent = dashboard_fakes.read_sent(console)
  dashboard.close()
  assert dashboard_fakes.read_sent(console) == sent
  with pytest.raises(ValueError, match=r'after close'):
    dashboard.update(dashboard_fakes.STATUS)


def test_nothing_is_shown_before_the_first_update():
  console = dashboard_fakes.make_console()
  loggers.Dashboard(console).close()
  assert dashboard_fakes.read_sent(console) == ''


@pytest.mark.parametrize('name', ['period_seconds', 'plain_period_seconds'])
def test_periods_are_checked(name):
  periods: dict[str, Any] = {name: -1}
  with pytest.raises(ValueError, match=rf'{name}: expected .* found -1'):
    loggers.Dashboard(**periods)
