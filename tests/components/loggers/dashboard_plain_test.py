"""Tests of Dashboard where there is no terminal."""

import contextlib
import io
import os
import re

import dashboard_fakes
import pytest
import rich.console

from repertory.components import loggers


@pytest.fixture(name='clock')
def _clock():
  return dashboard_fakes.Clock()


def _make_plain(clock, force_terminal=False):
  console = rich.console.Console(
    file=io.StringIO(), force_terminal=force_terminal, width=80
  )
  return console, loggers.Dashboard(console, clock=clock)


def test_plain_lines(clock):
  console, dashboard = _make_plain(clock)
  with dashboard:
    for now in (0, 1, 4.9, 5, 9.9, 10.5, 11):
      clock.now = now
      dashboard.update(dashboard_fakes.change(episodes=round(10 * now)))
  # At 0, 5 and 10.5, and the last one at close.
  found = re.findall(r'episodes=(\d+) .*\n', dashboard_fakes.read_sent(console))
  assert found == ['0', '50', '105', '110']


def test_plain_figures(clock):
  console, dashboard = _make_plain(clock)
  dashboard.update(dashboard_fakes.STATUS)
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
  dashboard.close()


def test_plain_line_without_unknowns(clock):
  console, dashboard = _make_plain(clock)
  dashboard.update(loggers.Status(title='[new]', message='a\n[b]'))
  line = dashboard_fakes.read_sent(console)
  assert line.startswith('[new]: elapsed_seconds=0 steps=0 ')
  assert line.endswith('message="a\\n[b]"\n')
  assert 'None' not in line
  dashboard.close()


def test_last_plain_line_even_on_exceptions(clock):
  console, dashboard = _make_plain(clock)
  with pytest.raises(KeyError, match='broken'), dashboard:
    dashboard.update(dashboard_fakes.STATUS)
    dashboard.update(dashboard_fakes.change(episodes=777))
    raise KeyError('broken')
  assert 'episodes=777' in dashboard_fakes.read_sent(console).splitlines()[-1]


def test_goes_on_when_nobody_reads(clock):
  reader, writer = os.pipe()
  os.close(reader)
  with os.fdopen(writer, 'w') as stdout, contextlib.redirect_stdout(stdout):
    with loggers.Dashboard(clock=clock) as dashboard:
      for now in (0, 10, 20):
        clock.now = now
        dashboard.update(dashboard_fakes.STATUS)
    print('What others print is lost, too.', flush=True)


def test_terminal_without_cursor_control_gets_lines(clock, monkeypatch):
  monkeypatch.setenv('TERM', 'dumb')
  console, dashboard = _make_plain(clock, force_terminal=True)
  with dashboard:
    dashboard.update(dashboard_fakes.STATUS)
  assert dashboard_fakes.read_sent(console).count('steps=123400') == 2
  assert '╭' not in dashboard_fakes.read_sent(console)
