"""Tests of warm starts from another run's networks."""

import dataclasses
import os
import shutil

import numpy as np
import pytest

from repertory import launch
from repertory.components import learners
from repertory.components.checkpoints import checkpointing
from repertory.launch.experiments import directories
from support.launch import log_files, sessions

_SETTINGS = {
  'min_replay_size': 20, 'hidden_sizes': (8,), 'jit_compile': False
}  # fmt: skip
# Updates that change nothing: such a step is 0 in single precision.
_STILL = {'learning_rate': 1e-45, 'target_update_period': 10**6}


def make(directory, max_steps, config=None, agent='dqn', **settings):
  return launch.make_experiment(
    agent,
    **{'environment': 'catch', **settings},
    max_steps=max_steps,
    directory=str(directory),
    config={**_SETTINGS, **(config or {})},
    evaluation_episodes=0,
  )


@pytest.fixture(scope='module', name='source')
def _source(tmp_path_factory):
  directory = tmp_path_factory.mktemp('runs') / 'source'
  # So the target differs from the online network.
  launch.run(make(directory, 90, {'target_update_period': 9}), display=False)
  return directory


def learned(directory):
  arrays = directories.load_checkpoint(str(directory)).arrays
  return learners.select_learned(arrays)


def assert_same(ours, theirs):
  assert ours.keys() == theirs.keys()
  for name, array in ours.items():
    np.testing.assert_array_equal(array, theirs[name], name)


@pytest.mark.parametrize(
  ('topology', 'environment'),
  [
    ('single', 'catch'),
    pytest.param('distributed', 'catch', marks=pytest.mark.chaos),
    pytest.param('anakin', 'tensor:catch', marks=pytest.mark.chaos),
  ],
)
def test_begins_with_the_networks(tmp_path, source, topology, environment):
  experiment = make(
    tmp_path, 60, _STILL, initial_from=str(source), environment=environment
  )
  status = launch.run(experiment, topology, display=False).status
  # Counted from 0; the source has more than 30.
  assert 0 < status.learner_steps < 30
  assert status.message.startswith(
    f'begins with the networks of {source} after update '
  )
  checkpoint = directories.load_checkpoint(str(tmp_path))
  theirs = learned(source)
  assert_same(learners.select_learned(checkpoint.arrays), theirs)
  # Weights and biases of three layers, of the online network and its target.
  assert len({array.tobytes() for array in theirs.values()}) == 12
  counts = directories.load_checkpoint(str(source)).state['counts']
  expected = {
    'directory': str(source),
    'checkpoint': '00000001',
    'agent': 'dqn',
    'environment': 'catch',
    'steps': 90,
    'learner_steps': counts['learner_steps'],
  }
  assert checkpoint.state['initial_from'] == expected
  (row,) = [row for row in log_files.nodes(tmp_path) if 'initial_from' in row]
  assert (row['node'], row['initial_from']) == ('learner', expected)


class TestResumed:
  @pytest.mark.chaos
  def test_keeps_its_own_even_if_the_other_is_gone(self, tmp_path, source):
    gone = tmp_path / 'gone'
    shutil.copytree(source, gone)
    experiment = make(tmp_path / 'run', 60, initial_from=str(gone))
    launch.run(experiment, display=False)
    before = learned(tmp_path / 'run')
    shutil.rmtree(gone)
    longer = dataclasses.replace(experiment, max_steps=61)
    status = launch.run(longer, display=False).status
    assert status.steps == 61
    assert status.message.startswith('resumed from checkpoint')
    checkpoint = directories.load_checkpoint(str(tmp_path / 'run'))
    assert checkpoint.state['initial_from']['directory'] == str(gone)
    with pytest.raises(AssertionError):
      assert_same(before, learned(source))
    # Nor is the setting required again.
    without = dataclasses.replace(longer, initial_from=None, max_steps=62)
    launch.run(without, display=False)

  def test_began_otherwise(self, tmp_path, source):
    launch.run(make(tmp_path, 30), display=False)
    experiment = make(tmp_path, 60, initial_from=str(source))
    with pytest.raises(
      ValueError, match='began with new networks; got'
    ) as info:
      launch.run(experiment, display=False)
    assert 'initial_from must be left out' in str(info.value)
    assert 'fresh=True' in str(info.value)
    launch.run(experiment, fresh=True, display=False)
    other = dataclasses.replace(experiment, initial_from=str(tmp_path / 'o'))
    with pytest.raises(ValueError, match=f'and began with {source}; got'):
      launch.run(other, display=False)


def test_may_begin_with_what_is_moved_aside(tmp_path, source):
  run = tmp_path / 'run'
  shutil.copytree(source, run)
  experiment = make(run, 60, _STILL, initial_from=str(run))
  launch.run(experiment, fresh=True, display=False)
  assert_same(learned(run), learned(source))
  assert len(os.listdir(tmp_path)) == 2


def test_what_another_start_left_is_not_taken(tmp_path, source):
  warm = make(tmp_path, 60, _STILL, initial_from=str(source))
  with sessions.open_session(warm) as session:
    placed = checkpointing.Checkpointer(session.initial_directory).load()
    assert_same(placed.arrays, learned(source))
  with sessions.open_session(make(tmp_path, 60)) as session:
    assert session.initial is None
    assert not os.path.exists(session.initial_directory)


class TestRefusals:
  def refuse(self, experiment, *words):
    with pytest.raises(ValueError, match='initial_from must be') as info:
      launch.run(experiment, fresh=True, display=False)
    for word in words:
      assert word in str(info.value)
    assert not os.path.exists(experiment.directory)

  def test_other_networks(self, tmp_path, source):
    settings = {'directory': tmp_path / 'run', 'initial_from': str(source)}
    self.refuse(
      make(max_steps=60, config={'hidden_sizes': (8, 9)}, **settings),
      f"but checkpoint {source}/checkpoints/00000001 ('dqn' on 'catch') ",
      '/linear_1/b:0 has shape none there and (9,) here; ',
      'more. Use the settings',
    )
    self.refuse(
      make(max_steps=60, environment='catch:6x5', **settings),
      'linear_0/w:0 has shape (50, 8) there and (30, 8) here',
    )

  def test_no_networks(self, tmp_path, source):
    for directory, words in (
      (tmp_path / 'none', 'found none in'),
      (source / 'checkpoints', 'Name the directory of the run'),
    ):
      experiment = make(tmp_path / 'run', 60, initial_from=str(directory))
      self.refuse(experiment, words)
    best = tmp_path / 'other'
    shutil.copytree(source / 'checkpoints', best / 'best')
    experiment = make(tmp_path / 'run', 60, initial_from=str(best))
    self.refuse(experiment, 'of the best evaluation alone will not do')

  def test_damaged_ones(self, tmp_path, source):
    damaged = tmp_path / 'damaged'
    shutil.copytree(source, damaged)
    path = damaged / 'checkpoints' / '00000001' / 'arrays.npz'
    path.write_bytes(b'garbage')
    experiment = make(tmp_path / 'run', 60, initial_from=str(damaged))
    self.refuse(experiment, 'must be readable', 'arrays.npz should have')
