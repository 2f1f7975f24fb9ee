"""Tests of `environments/adapters/atari.py`."""

import itertools

import numpy as np
import pytest

from repertory.environments.registry import registry


def run(name, num_steps, action=0):
  """Returns the timesteps of one game."""
  environment = registry.make(name, seed=0)
  timesteps = [environment.reset()]
  for _ in range(num_steps):
    timesteps.append(environment.step(action))
  environment.close()
  return timesteps


@pytest.mark.parametrize(
  ('option', 'num_steps'),
  [
    # 60 frames are 15 actions of 4 frames.
    ('', 15),
    ('&frame_skip=7', 9),
  ],
)
def test_an_action_lasts_as_long_as_it_should(option, num_steps):
  timesteps = run(f'atari:Pong?noops=0&max_frames=60{option}', num_steps + 1)
  ends = [t.last() for t in timesteps]
  assert ends.index(True) == num_steps
  assert timesteps[num_steps].discount == 1
  assert timesteps[num_steps + 1].first()


def test_the_newest_screen_is_last():
  timesteps = run('atari:Pong', 8, action=2)
  for previous, timestep in itertools.pairwise(timesteps):
    np.testing.assert_array_equal(
      timestep.observation[..., :-1], previous.observation[..., 1:]
    )
  assert not timesteps[0].observation[..., :-1].any()
  assert timesteps[0].observation[..., -1].any()


@pytest.mark.parametrize(
  ('option', 'num_actions'), [('', 4), ('?full_actions=true', 18)]
)
def test_actions(option, num_actions):
  environment = registry.make(f'atari:Breakout{option}', seed=0)
  assert environment.action_spec().num_values == num_actions
  environment.close()


def test_a_lost_life_ends_an_episode_and_not_the_game():
  # Action 1 fires; the paddle does not move to the ball.
  game = run('atari:Breakout?noops=0', 140, action=1)
  lives = run('atari:Breakout?noops=0&life_loss=true', 140, action=1)
  game_ends = [i for i, t in enumerate(game) if t.last()]
  life_ends = [i for i, t in enumerate(lives) if t.last()]
  assert len(game_ends) == 1
  # The game is over at the end of the fifth life, after four no-ops between.
  assert len(life_ends) >= 5
  assert life_ends[4] == pytest.approx(game_ends[0], abs=12)
  for i in life_ends:
    assert lives[i].discount == 0
    assert lives[i + 1].first()
  # The stack continues between lives; a new game starts with black screens.
  assert lives[life_ends[0] + 1].observation[..., 0].any()
  assert not lives[life_ends[4] + 1].observation[..., 0].any()
