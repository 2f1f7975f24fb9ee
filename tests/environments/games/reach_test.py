"""Tests of `environments/games/reach.py`."""

import dm_env
import numpy as np
import pytest

from repertory.environments.games import reach


def find(image):
  """Returns the center of each channel's intensity, in pixels, `[2, 2]`."""
  light = image / image.sum(axis=(0, 1))
  rows, columns = np.indices(image.shape[:2])
  return [
    ((rows * light[..., c]).sum(), (columns * light[..., c]).sum())
    for c in range(2)
  ]


def test_image_encodes_the_positions():
  environment = reach.Reach(seed=3)
  timestep = environment.reset()
  environment._hand = np.array([0.25, 0.9])
  environment._goal = np.array([1.0, 0.0])
  timestep = environment.step(np.zeros(2, np.float32))
  hand, goal = find(timestep.observation)
  # In units of nine pixels, up to rounding to 255ths.
  np.testing.assert_allclose(hand, [9 * 0.25, 9 * 0.9], atol=0.02)
  np.testing.assert_allclose(goal, [9, 0])
  assert timestep.observation[..., 1].max() == 255


def test_success():
  environment = reach.Reach(seed=0)
  environment.reset()
  environment._hand, environment._goal = np.array([0.5, 0.4]), np.full(2, 0.5)
  environment._goal[1] = 0.651  # 0.251 away: out of reach after one step.
  timestep = environment.step(np.array([0.0, 1.0], np.float32))
  assert timestep.step_type == dm_env.StepType.MID
  assert (timestep.reward, timestep.discount) == (0, 1)
  timestep = environment.step(np.array([0.0, 0.1], np.float32))
  assert timestep.last()
  assert (timestep.reward, timestep.discount) == (1, 0)


def test_is_cut_off():
  environment = reach.Reach(max_steps=3, seed=0)
  timestep = environment.reset()
  environment._hand, environment._goal = np.zeros(2), np.ones(2)
  for i in range(3):
    timestep = environment.step(np.zeros(2, np.float32))
    assert timestep.last() == (i == 2)
  assert (timestep.reward, timestep.discount) == (0, 1)


@pytest.mark.parametrize('action', [1.0, [0.5, 1.1], [np.nan, 0.0], [1, 0]])
def test_refuses_actions(action):
  environment = reach.Reach()
  environment.reset()
  with pytest.raises(ValueError, match=r'expected two numbers in \[-1, 1\]'):
    environment.step(action)
