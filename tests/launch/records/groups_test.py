"""Tests of which runs belong together, and what groups are called."""

import json

import written_runs
from repertory.launch import records


def _group(folder):
  return records.group(records.find([folder]).runs)


def _config(**settings):
  return {
    **written_runs.CONFIG,
    **{f'config.{name}': value for name, value in settings.items()},
  }


def _shape(grouped):
  return [
    (one.label, one.environment, [run.seed for run in one.runs])
    for one in grouped.groups
  ]


def test_seeds_go_together(tmp_path):
  for seed in (2, 0, 1):
    written_runs.write(tmp_path / f'{seed}', seed=seed)
  grouped = _group(tmp_path)
  assert _shape(grouped) == [('dqn', 'catch', [0, 1, 2])]
  assert not grouped.notes


def test_settings_that_differ_on_an_environment_name_groups_everywhere(
  tmp_path,
):
  written_runs.write(tmp_path / 'a', config=_config(n_step=1))
  written_runs.write(tmp_path / 'b')
  written_runs.write(tmp_path / 'c', environment='x')
  written_runs.write(tmp_path / 'd', agent='ppo', environment='x')
  assert _shape(_group(tmp_path)) == [
    ('dqn, n_step=1', 'catch', [0]),
    ('dqn, n_step=3', 'catch', [0]),
    ('dqn, n_step=3', 'x', [0]),
    ('ppo', 'x', [0]),
  ]


def test_what_only_environments_differ_in_names_none(tmp_path):
  written_runs.write(tmp_path / 'a', config=_config(batch_size=1))
  written_runs.write(tmp_path / 'b', environment='x')
  assert _group(tmp_path).labels == ['dqn']


def test_topology_tells_groups_apart_without_its_settings(tmp_path):
  written_runs.write(tmp_path / 'a')
  written_runs.write(
    tmp_path / 'b',
    topology='distributed',
    config={**written_runs.CONFIG, 'num_environments': 2},
  )
  assert _group(tmp_path).labels == ['dqn, distributed', 'dqn, single']


def test_what_runs_began_with_tells_them_apart(tmp_path):
  for name, *begun_with in (
    ('a',),
    # The second start of a run need not say it again.
    ('b', 'runs/a', None),
    ('c', 'runs/z'),
  ):
    written_runs.write(tmp_path / name)
    starts = [
      {
        'begun': f'2026-01-01T00:00:0{i}+00:00',
        'experiment': {'initial_from': of},
      }
      for i, of in enumerate(begun_with)
    ]
    with open(tmp_path / name / 'logs' / 'runs.jsonl') as file:
      kept = file.read()
    with open(tmp_path / name / 'logs' / 'runs.jsonl', 'w') as file:
      file.writelines(json.dumps(start) + '\n' for start in starts)
      file.write(kept)
  grouped = _group(tmp_path)
  assert grouped.labels == [
    'dqn',
    'dqn, initial_from=runs/a',
    'dqn, initial_from=runs/z',
  ]
  assert not grouped.notes


def test_number_of_environments_names_groups_that_differ_in_nothing_else(
  tmp_path,
):
  written_runs.write(tmp_path / 'a')
  config = {**written_runs.CONFIG, 'num_environments': 2}
  written_runs.write(tmp_path / 'b', config=config)
  assert _group(tmp_path).labels == [
    'dqn, num_environments=1',
    'dqn, num_environments=2',
  ]


def test_values_are_written_as_flags(tmp_path):
  written_runs.write(tmp_path / 'a', config=_config(double=True, sizes=[4, 2]))
  written_runs.write(tmp_path / 'b', config=_config(double=False, sizes=[8]))
  assert _group(tmp_path).labels == [
    'dqn, double=false, sizes=8',
    'dqn, double=true, sizes=4,2',
  ]


def test_of_one_seed_the_run_counts_that_came_further(tmp_path):
  short = written_runs.write(tmp_path / 'a', [(10, 0.0)])
  long = written_runs.write(tmp_path / 'b', [(20, 0.0)])
  grouped = _group(tmp_path)
  assert [run.directory for run in grouped.groups[0].runs] == [long]
  assert grouped.notes == [
    f'{short} is of the same seed and settings as {long}'
  ]


def test_runs_without_steps_are_left_out(tmp_path):
  directory = written_runs.write(tmp_path / 'a', ())
  grouped = _group(tmp_path)
  assert not grouped.groups
  assert grouped.notes == [f'{directory} has no steps yet']


def test_settings_that_say_something(tmp_path):
  written_runs.write(tmp_path / 'a', config=_config(n_step=1, own=1))
  written_runs.write(tmp_path / 'b', config=_config(n_step=3, own=1))
  written_runs.write(tmp_path / 'c', agent='ppo', config=_config(discount=0.9))
  compared = records.groups.compare(_group(tmp_path).groups)
  # `own` is of DQN alone, and the same in both.
  assert compared == {'n_step': [1, 3, 3], 'discount': [0.99, 0.99, 0.9]}
