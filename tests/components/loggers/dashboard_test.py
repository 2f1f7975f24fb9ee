"""Tests of the dashboard's layout, and of its lines."""

import dataclasses
import io
import re
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
    ('evaluator', 'done'),
  ),
  message='checkpoint 17 written',
)


def _draw(status=_STATUS, width=80):
  """Returns the panel as text."""
  file = io.StringIO()
  console = rich.console.Console(file=file, width=width)
  console.print(dashboard_view.draw(status))
  return file.getvalue()


def _change(**changes):
  return dataclasses.replace(_STATUS, **changes)


def test_all_figures_are_shown():
  text = re.sub(r' +', ' ', _draw())
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
    'checkpoint 17 written',
  ):
    assert expected in text
  # Urgent states come first.
  assert re.findall('│ ((?:failed|running|done) [^│]+?) │', text) == [
    'failed actor/2', 'running learner, actor ×2', 'done evaluator',
  ]  # fmt: skip


def test_starting_nodes_are_shown_with_their_activities():
  starts = (
    loggers.NodeStart('actor/0', 'making 2 environments', 3_713.0),
    loggers.NodeStart('actor/1', 'making 2 environments', 3_721.0),
    loggers.NodeStart('actor/2', 'making 2 environments', 3_722.0),
    loggers.NodeStart('learner', '', 3_703.0),
  )
  states = ('starting', 'starting', 'restarting', 'starting', 'running')
  names = ('actor/0', 'actor/1', 'actor/2', 'learner', 'replay')
  status = _change(nodes=tuple(zip(names, states)), starts=starts)
  text = re.sub(r' +', ' ', _draw(status))
  for expected in (
    'restarting actor/2: making 2 environments 1.0 s',
    'starting actor ×2: making 2 environments 10 s',
    'starting learner 20 s',
    'running replay',
  ):
    assert expected in text
  assert dashboard_view.describe(status, False).endswith(
    'starting: actor/2: making 2 environments; '
    'actor ×2: making 2 environments; learner'
  )


def test_inference_and_learners_are_shown():
  status = _change(
    inference=(
      {
        'node': 'learner',
        'rows_per_second': 900,
        'rows_per_batch': 7.6,
        'fill': 0.9,
        'wait_ms_p50': 1,
        'run_ms_p50': 2,
        'transport_ms_p50': 3,
        'adding_share': 0.1,
      },
    ),
    learners=(
      {
        'node': 'learner/0',
        'version': 1_500,
        'episode_return': 0.5,
        'messages_per_second': 2.5,
        'age_seconds': 0.02,
      },
    ),
    learners_distance=0.25,
  )
  text = re.sub(r' +', ' ', _draw(status, width=100))
  for expected in (
    'learner 900 rows/s 8 a batch, 90% full 1.0 + 2.0 + 3.0 ms, adding 10%',
    'learners (0.25 from their mean)',
    'return 0.50 1.50 k updates 2.5 messages/s, 20 ms old',
  ):
    assert expected in text


@pytest.mark.parametrize(('width', 'panel_width'), [(50, 50), (200, 100)])
def test_panel_fits(width, panel_width):
  text = _draw(width=width)
  rows = text.splitlines()
  assert {len(row) for row in rows} == {panel_width}
  assert {row[0] + row[-1] for row in rows} == {'╭╮', '││', '╰╯'}
  # Nothing is truncated or broken over two lines.
  assert '…' not in text
  assert re.search(r'12 of 64 +samples wait', text)


def test_what_is_unknown_is_not_shown():
  text = _draw(loggers.Status(title='new'))
  assert '0 steps' in text
  for absent in ('None', '%', 'return', 'evaluation', 'insert', 'age', 'left'):
    assert absent not in text
  for absent in ('replay', 'nodes'):
    assert absent not in text


def test_brackets_are_text_not_markup():
  text = _draw(
    _change(
      title='[bold]title[/bold]',
      tables=(loggers.TableStatus('[red]', 1, 2),),
      nodes=(('[a]', 'running'),),
      message='[/c]',
    )
  )
  for expected in ('[bold]title[/bold]', '[red]', '[a]', '[/c]'):
    assert expected in text


def _read_lines(statuses):
  """Returns the lines of statuses, and of the end with the last of them."""
  file = io.StringIO()
  dashboard = loggers.Dashboard(rich.console.Console(file=file))
  for number, status in enumerate(statuses, 1):
    dashboard._newest, dashboard._set_at = status, time.monotonic()
    dashboard._write_line(number == len(statuses))
  return file.getvalue().splitlines()


def test_lines_do_not_repeat_themselves():
  assert _read_lines(
    [
      _STATUS,
      _change(elapsed_seconds=3733.0),
      _change(message='a\n[b]'),
      loggers.Status('run', steps=1_234, message='a\n[b]'),
      loggers.Status('run', num_restarts=2, message='c'),
      loggers.Status('run', elapsed_seconds=62),
    ]
  ) == [
    'dqn on catch, distributed (threads): 123,400 of 200,000 steps, '
    'return 0.871, evaluation 0.95, 1.65 k steps/s, 38 m 10 s left; '
    'checkpoint 17 written',
    '123,400 of 200,000 steps, return 0.871, evaluation 0.95, '
    '1.65 k steps/s, 38 m 10 s left; a [b]',
    '1,234 steps',
    '0 steps, 2 restarts; c',
    '0 steps, after 1 m 02 s',
  ]
