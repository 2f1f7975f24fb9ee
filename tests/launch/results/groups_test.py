"""Tests of groups of runs, and of their labels."""

import json

from repertory.launch import results
from support.launch import written_runs


def _group(folder):
  return results.group(results.find([folder]).runs)


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


def test_topology_distinguishes_groups_without_its_settings(tmp_path):
  written_runs.write(tmp_path / 'a')
  written_runs.write(
    tmp_path / 'b',
    topology='distributed',
    config={**written_runs.CONFIG, 'num_environments': 2},
  )
  assert _group(tmp_path).labels == ['dqn, distributed', 'dqn, single']


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


def test_what_began_with_networks_of_other_runs_is_a_group_of_its_own(
  tmp_path, monkeypatch
):
  monkeypatch.chdir(tmp_path)
  for seed in range(2):
    written_runs.write(
      tmp_path / f'cold/seed_{seed}', seed=seed,
      experiment={'max_steps': 100 * seed},  # Lengths may differ.
    )  # fmt: skip
    other = f'before/seed_{seed}'
    written_runs.write(
      tmp_path / f'warm/seed_{seed}',
      seed=seed + 2,
      experiment={'initial_from': other},
    )
  # Its last start omitted the setting.
  resumed = tmp_path / 'warm/seed_2'
  initial_from = str(tmp_path / 'before/seed_2')
  written_runs.write(
    resumed, seed=4, ended=None, experiment={'initial_from': initial_from}
  )
  path = resumed / 'logs/runs.jsonl'
  (line,) = path.read_text().splitlines()
  last = json.loads(line)
  del last['experiment']['initial_from']
  path.write_text(f'{line}\n{json.dumps(last)}\n')
  assert _shape(_group(tmp_path)) == [
    ('dqn', 'catch', [0, 1]),
    ('dqn, initial_from=before', 'catch', [2, 3, 4]),
  ]


def test_what_wraps_an_agent_names_it_and_not_the_builder(tmp_path):
  plain = {**written_runs.CONFIG, 'builder': 'DQNBuilder'}
  written_runs.write(tmp_path / 'a', config=plain)
  for name in ('RND', 'SQIL'):
    config = {
      **plain,
      'builder': f'{name}Builder',
      'reward_model': name.lower(),
    }
    written_runs.write(tmp_path / name, config=config)
  assert _group(tmp_path).labels == [
    'dqn', 'dqn, reward_model=rnd', 'dqn, reward_model=sqil',
  ]  # fmt: skip


def test_of_one_seed_the_run_counts_that_came_further(tmp_path):
  short = written_runs.write(tmp_path / 'a', [(10, 0.0)])
  long = written_runs.write(tmp_path / 'b', [(20, 0.0)])
  grouped = _group(tmp_path)
  assert [run.directory for run in grouped.groups[0].runs] == [long]
  assert grouped.notes == [
    f'{short} has the same seed and settings as {long}, which has more steps'
  ]


def test_settings_that_say_something(tmp_path):
  written_runs.write(tmp_path / 'a', config=_config(n_step=1, own=1))
  written_runs.write(tmp_path / 'b', config=_config(n_step=3, own=1))
  written_runs.write(tmp_path / 'c', agent='ppo', config=_config(discount=0.9))
  compared = results.groups.compare(_group(tmp_path).groups)
  # `own` is a setting of DQN only, and the same in both.
  assert compared == {'n_step': [1, 3, 3], 'discount': [0.99, 0.99, 0.9]}


def test_groups_without_settings_of_others_have_labels_of_their_own(tmp_path):
  # As of versions before and after the setting was added.
  written_runs.write(tmp_path / 'a')
  written_runs.write(tmp_path / 'b', config=_config(new=[0.25, 2]))
  assert _group(tmp_path).labels == ['dqn', 'dqn (2)']
  written_runs.write(tmp_path / 'c', config=_config(new=[0.5, 2]))
  assert _group(tmp_path).labels == ['dqn', 'dqn, new=0.25,2', 'dqn, new=0.5,2']
