"""Tests of `environments/atari.py`."""

import itertools

import numpy as np
from absl.testing import absltest, parameterized

from repertory.environments import atari, registry


def run(name, num_steps, action=0):
  """Returns the timesteps of one game."""
  environment = registry.make(name, seed=0)
  timesteps = [environment.reset()]
  for _ in range(num_steps):
    timesteps.append(environment.step(action))
  environment.close()
  return timesteps


class AtariTest(parameterized.TestCase):
  @parameterized.parameters(
    # 60 frames are 15 actions of 4 frames, or 60 of 1: none are skipped twice.
    ('', 15),
    ('&frame_skip=1', 60),
    ('&frame_skip=7', 9),
  )
  def test_an_action_lasts_as_long_as_it_should(self, option, num_steps):
    timesteps = run(f'atari:Pong?noops=0&max_frames=60{option}', num_steps + 1)
    ends = [t.last() for t in timesteps]
    self.assertEqual(ends.index(True), num_steps)
    self.assertEqual(timesteps[num_steps].discount, 1)
    self.assertTrue(timesteps[num_steps + 1].first())

  def test_the_newest_screen_is_last(self):
    timesteps = run('atari:Pong', 8, action=2)
    for previous, timestep in itertools.pairwise(timesteps):
      np.testing.assert_array_equal(
        timestep.observation[..., :-1], previous.observation[..., 1:]
      )
    self.assertFalse(timesteps[0].observation[..., :-1].any())
    self.assertTrue(timesteps[0].observation[..., -1].any())

  def test_seeds_make_different_starts(self):
    environments = registry.make_factory('atari:Breakout').make_batch(range(6))
    environments.reset()
    # Where the ball is depends on how long nothing was done.
    screens = environments.step(np.ones(6, np.int32)).observation
    for _ in range(10):
      screens = environments.step(np.zeros(6, np.int32)).observation
    environments.close()
    self.assertGreater(len({screen.tobytes() for screen in screens}), 1)

  @parameterized.parameters(('', 4), ('?full_actions=true', 18))
  def test_actions(self, option, num_actions):
    environment = registry.make(f'atari:Breakout{option}', seed=0)
    self.assertEqual(environment.action_spec().num_values, num_actions)
    environment.close()

  def test_a_lost_life_ends_an_episode_and_not_the_game(self):
    # Action 1 fires, and nobody moves to the ball.
    game = run('atari:Breakout?noops=0', 140, action=1)
    lives = run('atari:Breakout?noops=0&life_loss=true', 140, action=1)
    game_ends = [i for i, t in enumerate(game) if t.last()]
    life_ends = [i for i, t in enumerate(lives) if t.last()]
    self.assertLen(game_ends, 1)
    # The game over is the end of the fifth life; four no-ops came between.
    self.assertGreaterEqual(len(life_ends), 5)
    self.assertAlmostEqual(life_ends[4], game_ends[0], delta=12)
    for i in life_ends:
      self.assertEqual(lives[i].discount, 0)
      self.assertTrue(lives[i + 1].first())
    # Between lives the stack goes on; a new game starts with black screens.
    self.assertTrue(lives[life_ends[0] + 1].observation[..., 0].any())
    self.assertFalse(lives[life_ends[4] + 1].observation[..., 0].any())

  def test_all_games_are_there(self):
    games = atari.games()
    self.assertContainsSubset(
      {'Pong', 'Breakout', 'MontezumaRevenge', 'SpaceInvaders'}, games
    )
    self.assertGreater(len(games), 100)


if __name__ == '__main__':
  absltest.main()
