"""Tests of finding and reading runs."""

import datetime
import json
import os

import pytest

from repertory.launch import results
from repertory.launch.experiments import directories
from support.launch import written_runs


def _states(*paths):
  found = results.find(map(str, paths))
  return {os.path.basename(run.directory): run.state for run in found.runs}


class TestFind:
  def test_runs_are_found_at_any_depth_and_once(self, tmp_path):
    for name in ('a', 'deep/er/b', 'c'):
      written_runs.write(tmp_path / name)
    found = results.find([tmp_path, tmp_path / 'deep', tmp_path / 'a'])
    assert [run.directory for run in found.runs] == [
      str(tmp_path / name) for name in ('a', 'c', 'deep/er/b')
    ]
    assert not found.others
    assert not found.describe_others()

  def test_folders_without_runs_are_named_as_a_whole(self, tmp_path):
    written_runs.write(tmp_path / 'a')
    (tmp_path / 'empty').mkdir()
    (tmp_path / 'foreign/deep').mkdir(parents=True)
    (tmp_path / 'foreign/deep/logs').mkdir()
    (tmp_path / '.hidden').mkdir()
    found = results.find([tmp_path])
    assert len(found.runs) == 1
    assert found.describe_others() == (
      f'Left out: {tmp_path}/empty (no run in it), {tmp_path}/foreign (no run '
      'in it).'
    )

  def test_what_was_set_aside_counts_only_if_it_is_named(self, tmp_path):
    aside = directories.set_aside(written_runs.write(tmp_path / 'a'))
    found = results.find([tmp_path])
    assert not found.runs
    assert found.others == [(aside, 'set aside by --fresh')]
    assert len(results.find([aside]).runs) == 1

  def test_links_are_followed_only_if_they_are_named(self, tmp_path):
    (tmp_path / 'runs').mkdir()
    (tmp_path / 'runs/link').symlink_to(written_runs.write(tmp_path / 'a'))
    assert not results.find([tmp_path / 'runs']).runs
    assert len(results.find([tmp_path / 'runs/link']).runs) == 1


class TestRead:
  def test_reads_all_fields(self, tmp_path):
    directory = written_runs.write(
      tmp_path / 'a', [(100, 1.0), (200, 3.0), (300, 2.0)], seed=4
    )
    run = results.read(directory)
    assert (run.agent, run.environment, run.seed) == ('dqn', 'catch', 4)
    assert run.settings == written_runs.CONFIG
    assert (run.state, run.topology, run.why) == ('done', 'single', '')
    assert (run.steps, run.max_steps, run.learner_steps) == (300, 1000, 150)
    assert run.last == (2.0, 300)
    assert run.best == (3.0, 200)
    assert run.ended == datetime.datetime(
      2026, 1, 2, 4, 4, 5, tzinfo=datetime.timezone.utc
    )
    assert list(run.logs['evaluator']['episode_return']) == [1, 3, 2]
    assert not run.logs.problems

  def test_states(self, tmp_path):
    written_runs.write(tmp_path / 'done')
    written_runs.write(tmp_path / 'failed', ended='failed')
    written_runs.write(tmp_path / 'interrupted', ended='interrupted')
    written_runs.write(tmp_path / 'killed', ended=None)
    (tmp_path / 'unborn').mkdir()
    (tmp_path / 'unborn/.lock').touch()
    expected = {
      'done': 'done',
      'failed': 'failed',
      'interrupted': 'interrupted',
      'killed': 'interrupted',
      'unborn': 'never begun',
    }
    assert _states(tmp_path) == expected
    with directories.hold(str(tmp_path / 'killed')):
      assert _states(tmp_path) == {**expected, 'killed': 'running'}
    assert results.read(tmp_path / 'interrupted').why == 'by SIGTERM'
    killed = results.read(tmp_path / 'killed')
    assert killed.why == 'its process ended without logging an outcome'

  def test_garbage_raises_nothing(self, tmp_path):
    written_runs.write(tmp_path / 'good')
    for name, content in (
      ('logs/runs.jsonl', b'[1]\n{"begun": 3, "config": 4}\n\xff'),
      ('logs/evaluator.csv', b'\0\0'),
      ('logs/nodes.jsonl', b'{"config": []}\n'),
    ):
      path = tmp_path / 'bad' / name
      path.parent.mkdir(parents=True, exist_ok=True)
      path.write_bytes(content)
    found = results.find([tmp_path])
    (run,) = found.runs
    assert run.directory == str(tmp_path / 'good')
    assert found.others[0][0] == str(tmp_path / 'bad')

  def test_values_of_wrong_kinds_raise_nothing(self, tmp_path):
    begun = {'begun': 'x', 'config': {'agent': 1, 'environment': 2}}
    for number, changes in enumerate(
      [
        {'config': {'agent': 1, 'environment': 2, 'reward_model': 3}},
        {'config': {'agent': 'dqn', 'environment': 'x', 'seed': 'many'}},
        {'experiment': {'demonstrations': 2}},
        {'experiment': {'max_steps': 'many', 'initial_from': 3}},
        {'experiment': 4, 'topology_settings': 3},
        {'topology_settings': {'data': 3}},
        {'topology_settings': {'data': [3]}, 'launch_settings': 4},
        {'steps': 'many'},
        {'ended': 3, 'state': 4, 'node': 5, 'cause': 6},
      ]
    ):
      written_runs.write(tmp_path / f'{number}', ended=None)
      with open(tmp_path / f'{number}/logs/runs.jsonl', 'a') as file:
        file.write(json.dumps({**begun, **changes}))
    found = results.find([tmp_path])
    assert results.table(found.runs)
    assert results.group(found.runs).groups
    assert len(found.others) == 7


class TestTable:
  @pytest.fixture
  def runs(self, tmp_path):
    written_runs.write(tmp_path / 'a', [(100, 1.0), (12_000, -2.5)], seed=1)
    written_runs.write(tmp_path / 'b', [(50, 7.0)], agent='ppo')
    written_runs.write(tmp_path / 'c', (), ended=None)
    return results.find([tmp_path]).runs

  def test_text(self, runs):
    header, first, second, third = results.table(runs).splitlines()
    for name in ('directory', 'agent', 'environment', 'seed', 'topology'):
      assert name in header
    assert ' catch ' in first
    assert ' 12,000 of 1,000 ' in first
    assert ' -2.5 ' in first
    assert 'done' in second
    assert third.endswith('its process ended without logging an outcome')
    # Cells of a column are aligned.
    assert header.index('state') == first.index('done') == second.index('done')
    without = results.table(runs[:2])
    assert 'why' not in without

  def test_csv_and_json_have_plain_values(self, runs):
    rows = json.loads(results.table(runs, format='json'))
    assert rows[0]['steps'] == 12_000
    assert rows[0]['best_return'] == 1.0
    assert rows[0]['when'] == '2026-01-02T04:04:05+00:00'
    assert rows[2]['last_return'] is None
    lines = results.table(runs, format='csv').splitlines()
    assert len(lines) == 4
    assert lines[0].startswith('directory,agent,')
    assert ',12000,1000,-2.5,1.0,done,2026' in lines[1]

  def test_data_and_reward_models_are_shown_where_there_are_some(
    self, runs, tmp_path
  ):
    assert not {'reward', 'data'} & set(results.table(runs).split())
    others = tmp_path / 'others'
    written_runs.write(
      others / 'd', topology='offline', topology_settings={'data': ['x', 'y']}
    )
    written_runs.write(
      others / 'e',
      config={**written_runs.CONFIG, 'wrap': 'gail'},
      experiment={'demonstrations': ['z']},
    )
    found = results.find([others]).runs
    header, first, second = results.table(found).splitlines()
    assert first.index('x, y') == header.index('data') == second.index('z')
    assert second.index('gail') == header.index('reward model')

  def test_order(self, runs):
    def order(sort):
      names = [row['directory'] for row in results.rows(runs, sort)]
      return ''.join(name[-1] for name in names)

    assert order('directory') == 'abc'
    assert order('-directory') == 'cba'
    # Rows without a value are last in both orders.
    assert order('last_return') == 'abc'
    assert order('-last_return') == 'bac'
