"""Tests of the topology `single`."""

import dataclasses
import functools
import time

import numpy as np
import pytest
import tensorflow as tf
from dm_env import specs

from repertory import launch
from repertory.agents import dqn
from repertory.components import interfaces
from repertory.components.config import settings as settings_lib
from repertory.components.runtime import versions
from repertory.environments.games import catch
from repertory.environments.registry import registry
from repertory.launch.experiments import directories
from repertory.launch.platform import machine_memory
from repertory.launch.topologies import single
from support.launch import log_files, sessions

_SETTINGS = {
  'min_replay_size': 100, 'samples_per_insert': 16.0, 'jit_compile': False
}  # fmt: skip


def _experiment(directory, **settings) -> launch.Experiment:
  defaults = {
    'max_steps': 1000,
    'config': _SETTINGS,
    'evaluation_episodes': 3,
    'directory': str(directory),
  }
  return launch.make_experiment('dqn', 'catch', **{**defaults, **settings})


@pytest.fixture(scope='module', name='ended')
def _ended(tmp_path_factory):
  """A completed run: its result and directory."""
  directory = tmp_path_factory.mktemp('ended')
  return launch.run(_experiment(directory), display=False), directory


class TestSingle:
  def test_counts_every_step_episode_and_learner_step(self, ended):
    result, directory = ended
    # Episodes of Catch have 9 steps; 1000 = 111 × 9 + 1. Each step is an item,
    # except the last, whose successor was never appended, nor, with n = 3, the
    # two before it; but those belong to the episode before. So 999 items.
    assert result.status.steps == 1000
    assert result.status.episodes == 111
    assert result.status.tables[0].size == 999
    # (999 − 100) × 16 samples are due, in batches of 32.
    assert result.status.learner_steps == 899 * 16 // 32
    assert log_files.total(log_files.rows(directory, 'actors')) == 111
    learner_rows = log_files.rows(directory, 'learner')
    assert log_files.total(learner_rows) == result.status.learner_steps
    assert log_files.rows(directory, 'replay')[-1]['inserts'] == 999

  def test_evaluates_at_each_tenth_and_at_the_end(self, ended):
    rows = log_files.rows(ended[1], 'evaluator')
    assert [row['steps'] for row in rows] == [*range(100, 1001, 100)]
    assert all(row['count'] == 3 for row in rows)


class _Screen(catch.Catch):
  """Shows images."""

  def __init__(self, seed):
    super().__init__(seed=seed)

  def observation_spec(self):
    return specs.BoundedArray((60, 70, 3), np.uint8, 0, 255)

  def reset(self):
    return super().reset()._replace(observation=np.zeros((60, 70, 3), np.uint8))


class TestTransport:
  def transport(self, experiment, **chosen):
    topology = single.Single(**chosen)
    with sessions.open_session(experiment, topology) as session:
      return session.transport

  def test_is_the_fast_one_unless_a_server_is_asked_for(self, tmp_path):
    experiment = _experiment(tmp_path)
    assert self.transport(experiment) == 'local'
    assert self.transport(experiment, replay='server') == 'served'

  def test_is_a_server_for_images_that_are_too_large(
    self, tmp_path, monkeypatch
  ):
    experiment = dataclasses.replace(
      _experiment(tmp_path), environment_factory=_Screen
    )
    # The image of an observation and of the next, which is another's; action,
    # reward and discount; a priority with its sums. A checkpoint copies what is
    # small, and the priority. A step makes an item.
    size = 1000 * (60 * 70 * 3 + 2 * 144 + 12 + 32 + 12 + 8)
    server = 'reverb' if versions.has_reverb() else 'served'
    for memory, transport in ((2 * size, 'local'), (2 * size - 2, server)):
      monkeypatch.setattr(
        machine_memory, 'total_bytes', functools.partial(int, memory)
      )
      assert self.transport(experiment) == transport

  def test_server_cannot_be_deterministic(self, tmp_path):
    experiment = _experiment(tmp_path, deterministic=True)
    assert self.transport(experiment) == 'local'
    with pytest.raises(settings_lib.SettingError) as refusal:
      launch.run(experiment, single.Single(replay='reverb'), display=False)
    assert refusal.value.setting == 'replay'


def test_what_is_no_experiment_is_refused():
  with pytest.raises(TypeError, match=r"Experiment, got 'runs/dqn'; .*make_ex"):
    launch.run('runs/dqn')


class _LookingUpdate(interfaces.Update):
  """Records the metrics of each update, which may be symbolic."""

  def __init__(self, update, look):
    super().__init__()
    self._update, self._look = update, look

  @property
  def exports(self):
    return self._update.exports

  def __call__(self, sample):
    result = self._update(sample)
    self._look(result.metrics['loss'])
    return result


class _LookingBuilder(dqn.DQNBuilder):
  def __init__(self, look):
    # (119 − 100) × 16 // 32 = 9 updates are due after 119 items.
    config = {**_SETTINGS, 'hidden_sizes': (8,)}
    super().__init__(dqn.DQNConfig(**config))
    self._look = look

  def make_update(self, network, spec):
    return _LookingUpdate(super().make_update(network, spec), self._look)


def _run_looking(directory, look, topology='single', **settings):
  experiment = launch.Experiment(
    _LookingBuilder(look),
    registry.make_factory('catch'),
    max_steps=120,
    directory=str(directory),
    environments_per_actor=1,
    evaluation_episodes=1,
    **settings,
  )
  result = launch.run(experiment, topology, display=False)
  return result, directories.load_checkpoint(str(directory)).arrays


class TestEager:
  def test_update_has_values_and_may_be_stopped_at(self, tmp_path):
    losses = []
    tf.config.run_functions_eagerly(True)

    def look(loss):
      losses.append(float(loss))
      if len(losses) == 1:
        time.sleep(2)  # Like somebody at a breakpoint.

    try:
      result, arrays = _run_looking(tmp_path / 'eager', look, stall_seconds=0.5)
      assert tf.config.functions_run_eagerly()
    finally:
      tf.config.run_functions_eagerly(False)
    assert len(losses) == result.status.learner_steps == 9
    # It learns the same as compiled.
    _, expected = _run_looking(tmp_path / 'compiled', lambda loss: None)
    assert arrays.keys() == expected.keys()
    for name, array in expected.items():
      np.testing.assert_allclose(arrays[name], array, 1e-3, 1e-5, err_msg=name)

  @pytest.mark.parametrize(
    ('topology', 'settings', 'message'),
    [
      ('distributed', {}, "^eager must be false with topology 'distributed', "),
      ('anakin', {}, r'^eager .* It can be true with single\.$'),
      ('single', {'deterministic': True}, '^eager must be false in a determin'),
    ],
  )
  def test_is_refused_elsewhere(self, topology, settings, message, tmp_path):
    with pytest.raises(settings_lib.SettingError, match=message):
      _run_looking(tmp_path, float, topology, eager=True, **settings)
    assert not list(tmp_path.iterdir())


def test_prints_of_tensorflow_reach_the_standard_output(tmp_path, capsys):
  _run_looking(tmp_path, lambda loss: tf.print('Loss:', loss))
  printed = capsys.readouterr().out.splitlines()
  assert sum(line.startswith('Loss: 0.') for line in printed) >= 1
  assert 'Loss' not in (tmp_path / 'logs' / 'native.log').read_text()
