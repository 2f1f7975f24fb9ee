"""Tests of `environments/games/catch.py`."""

import dm_env
import numpy as np
import pytest

from repertory.environments.games import catch


def find_column(timestep):
  """Returns the column of a ball that has just been dropped."""
  return int(np.argmax(timestep.observation[0]))


def play(environment, action):
  """Repeats an action until the episode ends; returns all timesteps."""
  timesteps = [environment.reset()]
  while not timesteps[-1].last():
    timesteps.append(environment.step(action))
  return timesteps


def test_episode():
  environment = catch.Catch()
  timesteps = play(environment, 1)
  ball = find_column(timesteps[0])
  assert len(timesteps) == 1 + 9
  for row, timestep in enumerate(timesteps):
    expected = np.zeros((10, 5), np.float32)
    expected[row, ball] = 1
    expected[9, 2] = 1  # The paddle stays in the middle, 5 // 2.
    np.testing.assert_array_equal(timestep.observation, expected)
  for timestep in timesteps[1:-1]:
    assert timestep.step_type == dm_env.StepType.MID
    assert (timestep.reward, timestep.discount) == (0, 1)
  assert timesteps[-1].discount == 0


@pytest.mark.parametrize(
  ('action', 'paddle'),
  [
    # Three steps left from column 2 end at the wall, column 0.
    (0, 0),
    (2, 4),
  ],
)
def test_reward(action, paddle):
  environment = catch.Catch(rows=4, columns=5, seed=0)
  rewards = {}
  for _ in range(100):
    timesteps = play(environment, action)
    rewards[find_column(timesteps[0])] = float(timesteps[-1].reward)
  assert rewards == {c: 1 if c == paddle else -1 for c in range(5)}


@pytest.mark.parametrize(
  ('columns', 'found'), [(0, '0'), (2.5, '2.5'), (True, 'True')]
)
def test_wrong_argument(columns, found):
  message = f'`columns`: expected an integer of at least 1, got {found}'
  with pytest.raises(ValueError, match=message):
    catch.Catch(columns=columns)


@pytest.mark.parametrize('action', [3, 0.5])
def test_wrong_action(action):
  environment = catch.Catch()
  environment.reset()
  with pytest.raises(ValueError, match=f'`action`.*got {action}'):
    environment.step(action)
