"""Tests of when Dashboard draws, and of its end."""

import io
import sys
import time
from typing import Any

import dashboard_fakes
import pytest
import rich.console

from repertory.components import loggers
from repertory.components.loggers import dashboard_thread


@pytest.fixture(name='clock')
def _clock():
  return dashboard_fakes.Clock()


@pytest.fixture(autouse=True)
def _environment(monkeypatch):
  dashboard_fakes.set_terminal(monkeypatch)


def _make_plain(clock):
  console = rich.console.Console(file=io.StringIO(), width=80)
  return console, loggers.Dashboard(console, clock=clock)


def _play(console, dashboard, clock, times):
  """Updates at given times, waits for due drawings, and returns them.

  Args:
    console: Console of the dashboard.
    dashboard: The dashboard.
    clock: Clock of the dashboard.
    times: Pairs of a time and whether a drawing is due.
  """
  for now, is_due in times:
    clock.now = now
    number = round(100 * now)
    dashboard.update(dashboard_fakes.change(episodes=number, steps=number))
    if is_due:
      dashboard_fakes.wait_until(
        lambda number=number: number in _find_numbers(console)
      )


def _find_numbers(console):
  return dashboard_fakes.find_numbers(dashboard_fakes.read_sent(console))


@pytest.mark.parametrize('is_plain', [False, True])
def test_period(clock, is_plain, monkeypatch):
  monkeypatch.setattr(dashboard_thread, '_TICK_SECONDS', 60.0)
  if is_plain:
    console = rich.console.Console(file=io.StringIO(), width=80)
  else:
    console = dashboard_fakes.make_console(color_system=None)
  dashboard = loggers.Dashboard(
    console,
    period_seconds=60 if is_plain else 0.5,
    plain_period_seconds=0.5 if is_plain else 60,
    first_plain_period_seconds=0.5,
    clock=clock,
  )
  times = (0.0, 0.4, 0.5, 0.6, 0.9, 1.0, 1.2)
  due = (True, False, True, False, False, True, False)
  _play(console, dashboard, clock, zip(times, due))
  # The last is drawn at the end all the same.
  dashboard.close()
  assert _find_numbers(console) == [0, 50, 100, 120]


def test_lines_are_more_frequent_at_first(clock):
  console, dashboard = _make_plain(clock)
  _play(
    console,
    dashboard,
    clock,
    [(0, True), (9, False), (10, True), (52, True), (59, False), (62, False),
     (111, False), (112, True), (171, False), (172, True)],
  )  # fmt: skip
  dashboard.close()
  found = _find_numbers(console)
  assert found == [0, 1_000, 5_200, 11_200, 17_200, 17_200]


def test_what_is_not_due_is_drawn_with_the_clock(clock, monkeypatch):
  monkeypatch.setattr(dashboard_thread, '_TICK_SECONDS', 0.2)
  console = dashboard_fakes.make_console(color_system=None)
  with loggers.Dashboard(console, clock=clock) as dashboard:
    _play(console, dashboard, clock, [(0.0, True), (0.1, False)])
    dashboard_fakes.wait_until(lambda: 10 in _find_numbers(console))


def test_time_advances_without_news(clock, monkeypatch):
  monkeypatch.setattr(dashboard_thread, '_TICK_SECONDS', 0.2)
  console = dashboard_fakes.make_console(color_system=None)
  with loggers.Dashboard(console, clock=clock) as dashboard:
    dashboard.update(dashboard_fakes.change(elapsed_seconds=75.0))
    dashboard_fakes.wait_until(
      lambda: '1 m 16 s' in dashboard_fakes.read_sent(console)
    )
    assert '1 m 15 s' in dashboard_fakes.read_sent(console)


def test_time_stands_still_where_lines_stay(clock, monkeypatch):
  monkeypatch.setattr(dashboard_thread, '_TICK_SECONDS', 0.01)
  console, dashboard = _make_plain(clock)
  dashboard.update(dashboard_fakes.STATUS)
  time.sleep(0.2)
  dashboard.close()
  assert dashboard_fakes.read_sent(console).count('steps') == 2 + 1


def test_printed_text_stays_above_the_panel(clock):
  console = dashboard_fakes.make_console()
  with loggers.Dashboard(console, clock=clock) as dashboard:
    dashboard.update(dashboard_fakes.STATUS)
    print('one')
    print('two', file=sys.stderr)
    print('three', end='', flush=True)
    sys.stdout.write('fo')
    sys.stdout.writelines(['ur\n', 'five'])
  screen = dashboard_fakes.read_screen(console)
  assert screen.rows[:5] == ['one', 'two', 'three', 'four', 'five']
  assert screen.rows[5].startswith('╭')
  assert screen.text.count('╭') == 1


def test_stored_streams_still_work_after_the_end(clock, capsys):
  with loggers.Dashboard(
    dashboard_fakes.make_console(), clock=clock
  ) as dashboard:
    dashboard.update(dashboard_fakes.STATUS)
    kept = sys.stdout
    assert kept.encoding.lower() == 'utf-8'
  print('later', file=kept, flush=True)
  assert capsys.readouterr().out == 'later\n'


@pytest.mark.parametrize('is_plain', [False, True])
def test_exception_gives_the_terminal_back(clock, is_plain):
  if is_plain:
    console, dashboard = _make_plain(clock)
  else:
    console = dashboard_fakes.make_console(color_system=None)
    dashboard = loggers.Dashboard(console, clock=clock)
  streams = sys.stdout, sys.stderr
  with pytest.raises(KeyError, match='broken'), dashboard:
    dashboard.update(dashboard_fakes.STATUS)
    assert (sys.stdout is streams[0]) == is_plain
    dashboard.update(dashboard_fakes.change(episodes=777, steps=777))
    raise KeyError('broken')
  assert (sys.stdout, sys.stderr) == streams
  sent = dashboard_fakes.read_sent(console)
  assert dashboard_fakes.Screen(sent).cursor_visible
  assert _find_numbers(console)[-1] == 777


@pytest.mark.parametrize('first', [True, False])
def test_status_that_cannot_be_drawn_ends_the_display_alone(
  clock, first, caplog, capsys
):
  console = dashboard_fakes.make_console()
  streams = sys.stdout, sys.stderr
  with loggers.Dashboard(console, clock=clock) as dashboard:
    if not first:
      dashboard.update(dashboard_fakes.STATUS)
    clock.now += 1
    dashboard.update(dashboard_fakes.change(steps='many'))
    dashboard_fakes.wait_until(lambda: caplog.records)
    clock.now += 1
    dashboard.update(dashboard_fakes.STATUS)
    print('continues')
  assert (sys.stdout, sys.stderr) == streams
  assert dashboard_fakes.read_screen(console).cursor_visible
  assert 'TypeError' in caplog.text
  assert capsys.readouterr().out == 'continues\n'


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
  assert dashboard_fakes.drawing_threads() == []


def test_nothing_is_shown_before_the_first_update():
  console = dashboard_fakes.make_console()
  loggers.Dashboard(console).close()
  assert dashboard_fakes.read_sent(console) == ''


@pytest.mark.parametrize(
  'name', ['period_seconds', 'plain_period_seconds', 'close_seconds']
)
def test_times_are_checked(name):
  times: dict[str, Any] = {name: -1}
  with pytest.raises(ValueError, match=rf'{name}: expected .* found -1'):
    loggers.Dashboard(**times)
