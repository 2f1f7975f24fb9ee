"""Tests of the dashboard's layout."""

import re

import dashboard_fakes
import pytest

from repertory.components import loggers
from repertory.components.loggers import dashboard_view


@pytest.fixture(autouse=True)
def _environment(monkeypatch):
  monkeypatch.setenv('TERM', 'xterm-256color')
  for name in ('NO_COLOR', 'FORCE_COLOR', 'TTY_INTERACTIVE', 'COLUMNS'):
    monkeypatch.delenv(name, raising=False)


def _draw(status=dashboard_fakes.STATUS, width=80):
  console = dashboard_fakes.make_console(width)
  with loggers.Dashboard(console) as dashboard:
    dashboard.update(status)
  return dashboard_fakes.read_screen(console)


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
    'targets/s 5.12 k',
    "targets' age 21.4 updates",
    "variables' age 1.23 k updates, 0.4 s",
    '67.0 k of 100 k inserts wait',
    '12 of 64 samples wait',
    '● failed actor/2',
    '● napping evaluator',
    '● running learner, actor ×2',
    'checkpoint 17 written',
  ):
    assert expected in text
  # Urgent states come first.
  states = re.findall('● (\\w+)', text)
  assert states == ['failed', 'napping', 'running']


def test_starting_nodes_are_shown_with_their_activities():
  status = dashboard_fakes.change(
    nodes=(
      ('actor/0', 'starting'),
      ('actor/1', 'restarting'),
      ('learner', 'starting'),
      ('replay', 'running'),
    ),
    starts=(
      loggers.NodeStart('actor/0', 'making 2 environments', 3_713.0),
      loggers.NodeStart('actor/1', 'making 2 environments', 3_721.0),
      loggers.NodeStart('learner', '', 3_703.0),
    ),
  )
  text = re.sub(r' +', ' ', _draw(status).text)
  for expected in (
    '● restarting actor/1: making 2 environments, 10 s',
    '● starting actor/0: making 2 environments, 10 s',
    '● starting learner: 20 s',
    '● running replay',
  ):
    assert expected in text


@pytest.mark.parametrize(
  ('width', 'panel_width'), [(50, 50), (80, 80), (90, 90), (200, 100)]
)
def test_panel_fits(width, panel_width):
  screen = _draw(width=width)
  rows = [row for row in screen.rows if row]
  assert {len(row) for row in rows} == {panel_width}
  assert {row[0] + row[-1] for row in rows} == {'╭╮', '││', '╰╯'}
  # Nothing is truncated or broken over two lines.
  assert '…' not in screen.text
  assert '12 of 64         samples wait' in screen.text


def test_what_is_unknown_is_not_shown():
  screen = _draw(loggers.Status(title='new'))
  assert '0 steps' in screen.text
  for absent in ('None', '%', 'return', 'evaluation', 'insert', 'age', 'left'):
    assert absent not in screen.text
  for absent in ('replay', '●'):
    assert absent not in screen.text


@pytest.mark.parametrize(
  ('steps', 'percent'),
  [(0, '0 %'), (199_999, '99 %'), (200_000, '100 %'), (200_123, '100 %')],
)
def test_percentage(steps, percent):
  assert f' {percent} ' in _draw(dashboard_fakes.change(steps=steps)).text


def test_progress_bar_grows():
  # Without colors the rest of the bar is left blank.
  filled = []
  for steps in (0, 100_000, 200_000):
    console = dashboard_fakes.make_console(color_system=None)
    with loggers.Dashboard(console) as dashboard:
      dashboard.update(dashboard_fakes.change(steps=steps, tables=()))
    filled.append(dashboard_fakes.read_screen(console).text.count('━'))
  assert filled[0] == 0
  assert filled[2] > 60
  assert abs(filled[1] - filled[2] / 2) <= 1


def test_brackets_are_text_not_markup():
  screen = _draw(
    dashboard_fakes.change(
      title='[bold]title[/bold]',
      tables=(loggers.TableStatus('[red]', 1, 2),),
      nodes=(('[a]', '[b]'),),
      message='[/c]',
    )
  )
  for expected in ('[bold]title[/bold]', '[red]', '[a]', '● [b]', '[/c]'):
    assert expected in screen.text


@pytest.mark.parametrize('num', [60, 100, 512])
@pytest.mark.parametrize('width', [40, 80])
def test_long_curve_fills_the_panel(num, width):
  console = dashboard_fakes.make_console(width)
  returns = [-1234.5 + i % 7 for i in range(num)]
  console.print(dashboard_view.StatusView(dashboard_fakes.STATUS, returns))
  rows = [row for row in dashboard_fakes.read_screen(console).rows if row]
  assert {len(row) for row in rows} == {width}
  (curve,) = [row for row in rows if '▁' in row]
  rest = len('│ return  -1.23 k  -1.23 k │')
  assert len(re.findall('[▁-█]', curve)) == width - rest


def test_blocked_side_is_checked():
  with pytest.raises(ValueError, match=r"blocked: expected .* found 'both'"):
    loggers.TableStatus('table', 1, 2, 'both')
