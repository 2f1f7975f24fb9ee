"""Tests of `launch/trained/videos.py`, and of videos of evaluations."""

import contextlib
import os
import re
from typing import Any

import dm_env
import numpy as np
import psutil
import pytest
from dm_env import specs

from repertory import launch
from repertory.components.actors import environment_loop
from repertory.components.config import settings
from repertory.environments import wrappers
from repertory.environments.batches import batch
from repertory.environments.registry import registry
from repertory.environments.rendering import rendering
from repertory.launch.cli import commands
from repertory.launch.trained import videos
from support.environments import video_files


class _Passive:
  """An actor whose actions are all the first."""

  def __init__(self, environments):
    spec = environments.action_spec()
    self._actions = np.zeros((environments.batch_size, *spec.shape), spec.dtype)

  def select_action(self, observation):
    return self._actions

  def observe_first(self, timestep):
    pass

  def observe(self, action, timestep):
    pass

  def update(self):
    pass


def record(environments, folder, num_episodes, video_format='mp4', **arguments):
  """Records videos of some episodes; returns the episodes."""
  recorder = videos.VideoRecorder(
    environments, str(folder), num_episodes, video_format
  )
  loop = environment_loop.EnvironmentLoop(recorder, _Passive(environments))
  loop.add_observer(recorder.keep)
  with contextlib.closing(environments), contextlib.closing(recorder):
    return loop.run_episodes(num_episodes, **arguments)


def check_no_process_is_left():
  assert not [
    one for one in psutil.Process().children() if 'ffmpeg' in one.name()
  ]


def enlarge(frame, found):
  factor = found.shape[1] // frame.shape[0]
  return np.kron(frame, np.ones((factor, factor, 1), np.uint8))


@pytest.mark.parametrize(
  ('name', 'max_steps'), [('catch', 9), ('atari:Pong', 30)]
)
def test_frames_of_each_step(name, max_steps, tmp_path):
  factory = registry.make_factory(name).with_rendering()

  def make(seed):
    return wrappers.StepLimit(factory(seed), max_steps)

  (episode,) = record(batch.EnvironmentBatch([make(7)]), tmp_path, 1)
  (path,) = tmp_path.iterdir()
  match = re.fullmatch(r'episode_001_return_(.*\..*)\.mp4', path.name)
  assert float(match[1]) == pytest.approx(episode.episode_return, rel=1e-4)
  found = video_files.read(path)
  assert len(found) == 1 + episode.length
  with contextlib.closing(factory(7)) as environment:
    environment.reset()
    frame = environment.render()
  error = np.abs(found[0].astype(float) - enlarge(frame, found))
  assert error.mean() < 6
  assert np.quantile(error, 0.9) < 30
  assert (found[0] != found[-1]).any()


class TestVideoRecorder:
  def test_gif_is_what_was_seen(self, tmp_path):
    record(batch.EnvironmentBatch([Numbered()]), tmp_path, 2, 'gif')
    paths = sorted(tmp_path.iterdir())
    for number, path in enumerate(paths, 1):
      found = video_files.read(path)
      shown = [Numbered.draw(number, step) for step in range(4)]
      expected = [enlarge(frame, found) for frame in shown]
      np.testing.assert_array_equal(found, expected)
    assert video_files.read(paths[-1]).shape == (4, 480, 360, 3)

  @pytest.mark.parametrize('error', [KeyboardInterrupt, OSError])
  def test_an_end_in_the_middle(self, error, tmp_path):
    environment = Numbered()
    environment.fails_at = (2, 2, error())
    expected = rendering.RenderError if error is OSError else error
    with pytest.raises(expected):
      record(batch.EnvironmentBatch([environment]), tmp_path, 4)
    assert os.listdir(tmp_path) == ['episode_001_return_0.0.mp4']
    check_no_process_is_left()

  def test_nothing_is_made_without_a_frame(self, tmp_path):
    make_batch = registry.make_factory('memory_chain').make_batch
    folder = tmp_path / 'videos'
    with pytest.raises(
      rendering.RenderError,
      match=r'cannot render: MemoryChain has no .*docs/videos\.md',
    ):
      record(make_batch([0]), folder, 1)
    assert not folder.exists()

  def test_error_names_the_folder(self, tmp_path):
    environment = Numbered()
    environment.shapes = {(1, 2): (3, 3, 3)}
    with pytest.raises(
      videos.VideoError, match=rf'Videos in {tmp_path}.*frames must have.*3x4'
    ):
      record(batch.EnvironmentBatch([environment]), tmp_path, 1)
    assert not os.listdir(tmp_path)


class Numbered(dm_env.Environment):
  """Shows the numbers of episode and step as colors."""

  render_fps = 10

  def __init__(self, episode_return=0.0, length=3):
    self._return = np.float64(episode_return)
    self._length = length
    self._where = (0, length)
    self.fails_at: Any = (0, 0, None)
    self.shapes = {}

  def reset(self):
    self._where = (self._where[0] + 1, 0)
    return dm_env.restart(np.zeros(1, np.float32))

  def step(self, action):
    episode, step = self._where
    if step == self._length:
      return self.reset()
    self._where = (episode, step + 1)
    observation = np.zeros(1, np.float32)
    if step + 1 == self._length:
      return dm_env.termination(self._return, observation)
    return dm_env.transition(np.float64(0), observation)

  def reward_spec(self):
    return specs.Array((), np.float64)

  def observation_spec(self):
    return specs.Array((1,), np.float32)

  def action_spec(self):
    return specs.DiscreteArray(2, np.int32)

  @staticmethod
  def draw(episode, step, shape=(4, 3, 3)):
    frame = np.zeros(shape, np.uint8)
    frame[0] = 60 * episode
    frame[:, 1, 1] = 20 * step
    return frame

  def render(self):
    *where, error = self.fails_at
    if self._where == tuple(where):
      raise error
    return self.draw(*self._where, self.shapes.get(self._where, (4, 3, 3)))


class TestPrepare:
  def test_folder(self, tmp_path):
    here = str(tmp_path)
    assert videos.prepare(True, 'mp4', here) == f'{here}/videos'
    assert videos.prepare('other', 'gif', here) == 'other'
    assert not os.listdir(here)

  @pytest.mark.parametrize('name', ['episode_001_return_1.0.gif', 'file'])
  def test_refused(self, name, tmp_path):
    (tmp_path / name).touch()
    folder = tmp_path / name if name == 'file' else tmp_path
    with pytest.raises(settings.SettingError, match=rf'must be .*{name}'):
      videos.prepare(str(folder), 'mp4', '')
    with pytest.raises(settings.SettingError, match='got nothing'):
      videos.prepare('', 'mp4', '')


@pytest.fixture(name='experiment')
def _experiment(tmp_path):
  """An experiment with a checkpoint of DQN."""
  experiment = launch.make_experiment(
    'dqn',
    'catch:6x4',
    max_steps=40,
    config={'min_replay_size': 10, 'max_replay_size': 100, 'batch_size': 4},
    evaluation_episodes=0,
    directory=str(tmp_path / 'run'),
  )
  launch.run(experiment, display=False)
  return experiment


class TestEvaluate:
  def test_command(self, experiment, capsys):
    def run(*flags):
      directory = f'--directory={experiment.directory}'
      code = commands.run(['evaluate', directory, '--episodes=1', *flags])
      return code, *capsys.readouterr()

    folder = os.path.join(experiment.directory, 'videos')
    code, out, _ = run('--novideo')
    assert code == 0
    assert not os.path.exists(folder)
    code, video_out, _ = run('--video')
    assert code == 0
    assert video_out == f'{out}videos     {folder}\n'
    (name,) = os.listdir(folder)
    mean = re.search('mean +(.*)', out)[1]
    assert name == f'episode_001_return_{mean}.0.mp4'
    for flag, message in (
      ('--video', rf'repertory: --video must be .* has 1, such as {name}'),
      ('--video=x --video_format=avi', '--video_format must be one of mp4'),
    ):
      code, _, complaint = run(*flag.split())
      assert code == 2
      assert re.search(message, complaint)
