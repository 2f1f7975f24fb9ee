"""Tests of the small games in `environments/games/`."""

import dm_env
import numpy as np
import pytest

from repertory.environments.games import catch, memory_chain, reach

FIRST, MID, LAST = dm_env.StepType


class TestCatch:
  def play(self, environment, action):
    """Repeats an action; returns the ball's column and all timesteps."""
    timesteps = [environment.reset()]
    while not timesteps[-1].last():
      timesteps.append(environment.step(action))
    return int(np.argmax(timesteps[0].observation[0])), timesteps

  def test_episode(self):
    ball, timesteps = self.play(catch.Catch(), 1)
    assert len(timesteps) == 1 + 9
    for row, timestep in enumerate(timesteps):
      expected = np.zeros((10, 5), np.float32)
      expected[row, ball] = 1
      expected[9, 2] = 1  # The paddle stays in the middle, 5 // 2.
      np.testing.assert_array_equal(timestep.observation, expected)
    for timestep in timesteps[1:-1]:
      assert timestep.step_type == MID
      assert (timestep.reward, timestep.discount) == (0, 1)
    assert timesteps[-1].discount == 0

  # Three steps left from column 2 end at the wall, column 0.
  @pytest.mark.parametrize(('action', 'paddle'), [(0, 0), (2, 4)])
  def test_reward(self, action, paddle):
    environment = catch.Catch(rows=4, columns=5, seed=0)
    episodes = [self.play(environment, action) for _ in range(100)]
    rewards = {ball: float(steps[-1].reward) for ball, steps in episodes}
    assert rewards == {c: 1 if c == paddle else -1 for c in range(5)}

  @pytest.mark.parametrize('columns', [0, 2.5, True])
  def test_wrong_argument(self, columns):
    message = f'`columns`: expected an integer of at least 1, got {columns}'
    with pytest.raises(ValueError, match=message):
      catch.Catch(columns=columns)


@pytest.mark.parametrize(('cue', 'answer'), [(0, 0), (0, 1), (1, 1)])
def test_memory_chain(cue, answer):
  environment = memory_chain.MemoryChain(length=3)
  while np.argmax(environment.reset().observation[:2]) != cue:
    pass
  # All actions but the last are wrong, without effect.
  actions = [1 - answer, 1 - answer, 1 - answer, answer]
  timesteps = [environment.step(action) for action in actions]
  assert [t.step_type for t in timesteps] == [MID, MID, MID, LAST]
  expected = [0, 0, 0, 1 if answer == cue else -1]
  assert [t.reward for t in timesteps] == expected
  assert [t.discount for t in timesteps] == [1, 1, 1, 0]
  np.testing.assert_array_equal(
    [t.observation for t in timesteps],
    # The query is three steps after the cue, which was in step 0.
    [[0, 0, 0], [0, 0, 0], [0, 0, 1], [0, 0, 0]],
  )


class TestReach:
  def start(self, hand, goal, **settings):
    environment = reach.Reach(seed=0, **settings)
    environment.reset()
    environment._hand, environment._goal = np.array(hand), np.array(goal)
    return environment

  def test_image_encodes_the_positions(self):
    environment = self.start([0.25, 0.9], [1.0, 0.0])
    image = environment.step(np.zeros(2, np.float32)).observation
    light = image / image.sum(axis=(0, 1))
    centers = [(light * i[..., None]).sum((0, 1)) for i in np.indices((10, 10))]
    # Of hand and goal, in units of nine pixels, up to rounding to 255ths.
    np.testing.assert_allclose(
      np.transpose(centers), [[9 * 0.25, 9 * 0.9], [9, 0]], atol=0.02
    )
    assert image[..., 1].max() == 255

  def test_success(self):
    # 0.251 away: out of reach after one step.
    environment = self.start([0.5, 0.4], [0.5, 0.651])
    timestep = environment.step(np.array([0.0, 1.0], np.float32))
    assert timestep.step_type == MID
    assert (timestep.reward, timestep.discount) == (0, 1)
    timestep = environment.step(np.array([0.0, 0.1], np.float32))
    assert timestep.last()
    assert (timestep.reward, timestep.discount) == (1, 0)

  def test_is_cut_off(self):
    environment = self.start(np.zeros(2), np.ones(2), max_steps=3)
    steps = [environment.step(np.zeros(2, np.float32)) for _ in range(3)]
    assert [step.step_type for step in steps] == [MID, MID, LAST]
    assert (steps[-1].reward, steps[-1].discount) == (0, 1)


@pytest.mark.parametrize(
  ('game', 'action', 'message'),
  [
    (catch.Catch, 3, 'got 3'),
    (catch.Catch, 0.5, 'got 0.5'),
    # Also before the query.
    (memory_chain.MemoryChain, 2, '0 or 1, got 2'),
    (reach.Reach, 1.0, r'expected two numbers in \[-1, 1\]'),
    (reach.Reach, [0.5, 1.1], 'expected two numbers'),
    (reach.Reach, [np.nan, 0.0], 'expected two numbers'),
    (reach.Reach, [1, 0], 'expected two numbers'),
  ],
)
def test_wrong_action(game, action, message):
  environment = game()
  environment.reset()
  with pytest.raises(ValueError, match=f'`action`.*{message}'):
    environment.step(action)
