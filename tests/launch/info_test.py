"""Tests of Gymnasium's info in logs, and of callbacks by import path."""

import json

import pytest

from repertory.components.actors import episode_metrics
from repertory.components.config.settings import SettingError
from repertory.launch.cli import commands as command_line
from support.launch import log_files
from support.system import rare_cases

_MODULE = """
  import json
  import dm_env
  import gymnasium
  import numpy as np
  from dm_env import specs
  from repertory import launch
  from repertory.components.actors import episode_metrics

  class Course(gymnasium.Env):
    '''Episodes of 2 and 3 steps, alternately; the long ones succeed.'''
    observation_space = gymnasium.spaces.Box(0, 1, (2,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)
    length = 2

    def reset(self, *, seed=None, options=None):
      super().reset(seed=seed)
      self.length = 5 - self.length
      self.count = 0
      return np.zeros(2, np.float32), {}

    def step(self, action):
      self.count += 1
      ends = self.count == self.length
      info = {'distance': np.float64(10 * self.length) if ends else -1.0,
              'success': ends and self.length == 3, 'where': 'here'}
      return np.ones(2, np.float32), 1.0, ends, False, info

  class Walk(dm_env.Environment):
    '''The same in the terms of dm_env.'''
    def __init__(self, seed):
      self.course, self.info, self.ends = Course(), {}, True

    def reset(self):
      self.ends = False
      return dm_env.restart(self.course.reset()[0])

    def step(self, action):
      if self.ends:
        return self.reset()
      seen, reward, self.ends, _, self.info = self.course.step(action)
      make = dm_env.termination if self.ends else dm_env.transition
      return make(reward, seen)

    def observation_spec(self):
      return specs.Array((2,), np.float32)

    def action_spec(self):
      return specs.DiscreteArray(2, np.int32)

  class Watch(launch.Callback):
    def on_start(self, run):
      self.file = open('seen.jsonl', 'a')

    def on_episodes(self, episodes):
      columns = [episodes.lengths, *episodes.metrics.values()]
      values = [column.tolist() for column in columns]
      self.file.write(json.dumps([list(episodes.metrics), *values]) + chr(10))

    def on_end(self, end):
      self.file.close()

  class Needy(launch.Callback):
    def __init__(self, path):
      pass

  class Moves(episode_metrics.EpisodeMetric):
    def begin(self, timestep):
      self.moves = 0

    def step(self, action, timestep):
      self.moves += 1

    def value(self):
      return self.moves
"""
_SETTINGS = (
  '--agent=dqn', '--steps=60', '--evaluation_episodes=2',
  '--config.hidden_sizes=4', '--config.min_replay_size=20',
  '--config.batch_size=4', '--config.jit_compile=false', '--directory=run',
)  # fmt: skip


@pytest.fixture(autouse=True)
def _modules(write_module):
  write_module('own_course', _MODULE)


def _train(*arguments) -> int:
  return command_line.run(['train', *_SETTINGS, *arguments])


_CASES = (
  ('Course', 'single', '--environments_per_actor=2'),
  ('Walk', 'central', '--environments_per_actor=2'),
  ('Course', 'distributed', '--lp_launch_type=local_mp'),
  ('Course', 'sebulba', '--environments_per_actor=2'),
  ('Course', 'gossip', '--num_actors=2'),
)


@pytest.mark.parametrize(
  'case', rare_cases.daily(_CASES, _CASES[:2]), ids=' '.join
)
def test_info_of_last_steps_is_logged(tmp_path, case):
  environment, topology, setting = case
  code = _train(
    f'--env=own_course:{environment}', f'--topology={topology}',
    setting,
    '--info=distance,success', '--episode_rows',
    '--callbacks=own_course:Watch',
    '--evaluation_metrics=moves=own_course:Moves',
  )  # fmt: skip
  assert code == 0
  run = tmp_path / 'run'
  rows = log_files.rows(run, 'episodes')
  assert len(rows) >= 20
  assert [row['episodes'] for row in rows] == list(range(1, len(rows) + 1))
  for row in rows:
    assert row['distance'] == 10 * row['episode_length']
    assert row['success'] == (row['episode_length'] == 3)
  assert {row['success'] for row in rows} == {0, 1}
  merged = log_files.rows(run, 'actors')
  for name in ('distance', 'success'):
    total = sum(row[name] * row['count'] for row in merged)
    assert total == pytest.approx(sum(row[name] for row in rows))
  for row in log_files.rows(run, 'evaluator'):
    assert row['distance'] == 10 * row['episode_length'] == 10 * row['moves']
  lines = (tmp_path / 'seen.jsonl').read_text().splitlines()
  seen = [json.loads(line) for line in lines]
  assert all(names == ['distance', 'success'] for names, *_ in seen)
  reported = [column for bundle in seen for column in zip(*bundle[1:])]
  assert reported == [
    (row['episode_length'], row['distance'], row['success']) for row in rows
  ]


@pytest.mark.parametrize(
  ('name', 'message'),
  [
    ('speed', "'speed' of `info` .* got nothing. .*: distance, success, where"),
    ('where', "'where' of `info` must be a number in the last .* got 'here'"),
  ],
)
def test_entries_that_are_missing_or_no_numbers(capsys, name, message):
  assert _train('--env=own_course:Course', f'--info={name}') == 1
  info = {'distance': 1.0, 'success': True, 'where': 'here'}
  with pytest.raises(ValueError, match=message):
    episode_metrics.read_info(info, [name])
  assert f"Entry '{name}' of `info`" in capsys.readouterr().err


@pytest.mark.parametrize(
  ('arguments', 'message'),
  [
    (['--env=catch', '--info=x'], '--info must be left out: these environm'),
    (
      ['--env=tensor:catch', '--info=x', '--topology=anakin'],
      '--info must be left out where a compiled loop steps',
    ),
    (
      ['--info=a,a'],
      "--info must be distinct names, none of them empty; got 'a'",
    ),
    (['--info=steps'], '--info must not be names of other columns'),
    (['--callbacks=Watch'], "--callbacks must be <module>:<class>, got 'Wat"),
    (['--callbacks=own_course:Wach'], "Did you mean 'Watch'"),
    (['--callbacks=own_course:Moves'], '`launch.Callback`'),
    (['--callbacks=own_course:Needy'], "argument: 'path'"),
    (
      ['--evaluation_metrics=own_course:Moves'],
      '--evaluation_metrics must be <column>=<module>:<class>',
    ),
  ],
)
def test_refused_before_the_start(tmp_path, capsys, arguments, message):
  assert _train(*arguments) == 2
  assert message in capsys.readouterr().err
  assert not (tmp_path / 'run').exists()


def test_names_are_a_list():
  with pytest.raises(SettingError, match='info must be a list of names, got'):
    episode_metrics.check_info('distance', {})
