"""Tests of `environments/catch.py`."""

import dm_env
import numpy as np
from absl.testing import absltest, parameterized
from dm_env import specs, test_utils

from repertory.environments import catch


class CatchConformanceTest(test_utils.EnvironmentTestMixin, absltest.TestCase):
  def make_object_under_test(self):
    return catch.Catch(rows=4, columns=3, seed=1)

  def make_action_sequence(self):
    for action in (0, 1, 2) * 5:
      yield np.array(action, np.int32)


def find_column(timestep):
  """Returns where the ball is that has just been dropped."""
  return int(np.argmax(timestep.observation[0]))


def play(environment, action):
  """Repeats an action until the episode ends; returns all timesteps."""
  timesteps = [environment.reset()]
  while not timesteps[-1].last():
    timesteps.append(environment.step(action))
  return timesteps


class CatchTest(parameterized.TestCase):
  def test_specs(self):
    environment = catch.Catch()
    self.assertEqual(
      environment.observation_spec(),
      specs.BoundedArray((10, 5), np.float32, 0, 1),
    )
    self.assertEqual(environment.action_spec(), specs.DiscreteArray(3))
    self.assertEqual(environment.reward_spec().dtype, np.float32)
    self.assertEqual(environment.reward_spec().shape, ())
    self.assertEqual(
      environment.discount_spec(), specs.BoundedArray((), np.float32, 0, 1)
    )

  def test_episode(self):
    environment = catch.Catch()
    timesteps = play(environment, 1)
    ball = find_column(timesteps[0])
    self.assertLen(timesteps, 1 + 9)
    for row, timestep in enumerate(timesteps):
      expected = np.zeros((10, 5), np.float32)
      expected[row, ball] = 1
      expected[9, 2] = 1  # The paddle stays in the middle, 5 // 2.
      np.testing.assert_array_equal(timestep.observation, expected)
    for timestep in timesteps[1:-1]:
      self.assertEqual(timestep.step_type, dm_env.StepType.MID)
      self.assertEqual((timestep.reward, timestep.discount), (0, 1))
    self.assertEqual(timesteps[-1].discount, 0)

  @parameterized.named_parameters(
    # Three steps left from column 2 end at the wall, column 0.
    ('left', 0, 0),
    ('stay', 1, 2),
    ('right', 2, 4),
  )
  def test_reward(self, action, paddle):
    environment = catch.Catch(rows=4, columns=5, seed=0)
    rewards = {}
    for _ in range(100):
      timesteps = play(environment, action)
      rewards[find_column(timesteps[0])] = float(timesteps[-1].reward)
    self.assertEqual(rewards, {c: 1 if c == paddle else -1 for c in range(5)})

  def test_last_move_counts(self):
    # With two rows the only step moves the paddle from 1 to 0 and ends.
    environment = catch.Catch(rows=2, columns=2)
    for _ in range(20):
      first, last = play(environment, 0)
      expected = 1 if find_column(first) == 0 else -1
      self.assertEqual(last.reward, expected)

  def test_seed(self):
    def columns(seed):
      environment = catch.Catch(seed=seed)
      return [find_column(environment.reset()) for _ in range(50)]

    self.assertEqual(columns(3), columns(3))
    self.assertNotEqual(columns(3), columns(4))
    self.assertEqual(set(columns(3)), {0, 1, 2, 3, 4})

  def test_observations_are_fresh(self):
    environment = catch.Catch()
    first = environment.reset().observation
    copy = first.copy()
    environment.step(0)
    np.testing.assert_array_equal(first, copy)

  @parameterized.named_parameters(
    ('rows', {'rows': 1}, '`rows`.*at least 2, got 1'),
    ('columns', {'columns': 0}, '`columns`.*at least 1, got 0'),
    ('fraction', {'columns': 2.5}, '`columns`.*integer.*2.5'),
    ('boolean', {'columns': True}, '`columns`.*integer.*True'),
    ('seed', {'seed': -1}, '`seed`.*at least 0, got -1'),
  )
  def test_wrong_argument(self, arguments, message):
    with self.assertRaisesRegex(ValueError, message):
      catch.Catch(**arguments)

  @parameterized.parameters(3, -1, 0.5, None)
  def test_wrong_action(self, action):
    environment = catch.Catch()
    environment.reset()
    with self.assertRaisesRegex(ValueError, f'`action`.*got {action}'):
      environment.step(action)


if __name__ == '__main__':
  absltest.main()
