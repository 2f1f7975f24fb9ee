"""Tests of `environments/gymnasium_adapter.py`."""

import sys
from unittest import mock

import dm_env
import fake_gym_env
import numpy as np
from absl.testing import absltest, parameterized
from dm_env import test_utils

from repertory.environments import gymnasium_adapter, registry

FakeGymEnv = fake_gym_env.FakeGymEnv


class CartPoleTest(test_utils.EnvironmentTestMixin, absltest.TestCase):
  def make_object_under_test(self):
    return gymnasium_adapter.make('CartPole-v1', seed=0)


class PendulumTest(test_utils.EnvironmentTestMixin, absltest.TestCase):
  def make_object_under_test(self):
    return gymnasium_adapter.make('Pendulum-v1', seed=0)


class SinglePrecisionTaxiTest(
  test_utils.EnvironmentTestMixin, absltest.TestCase
):
  def make_object_under_test(self):
    return registry.make('gym:Taxi-v4', seed=0)


class StepsTest(parameterized.TestCase):
  @parameterized.named_parameters(
    ('goes_on', False, False, dm_env.StepType.MID, 1),
    ('terminated', True, False, dm_env.StepType.LAST, 0),
    ('truncated', False, True, dm_env.StepType.LAST, 1),
    ('both', True, True, dm_env.StepType.LAST, 0),
  )
  def test_end(self, terminated, truncated, step_type, discount):
    environment = gymnasium_adapter.GymnasiumAdapter(
      FakeGymEnv(reward=3, terminated=terminated, truncated=truncated), 0
    )
    environment.reset()
    timestep = environment.step(0)
    self.assertEqual(timestep.step_type, step_type)
    self.assertEqual(timestep.discount, discount)
    self.assertEqual(timestep.reward, 3)
    self.assertEqual(environment.step(0).first(), timestep.last())

  def test_time_limit_of_gymnasium_keeps_the_discount(self):
    environment = gymnasium_adapter.make('Pendulum-v1', seed=0)
    timestep = environment.reset()
    num_steps = 0
    while not timestep.last():
      timestep = environment.step(np.zeros(1, np.float32))
      num_steps += 1
    self.assertEqual((num_steps, timestep.discount), (200, 1.0))

  def test_seed_is_used_once(self):
    gym_env = FakeGymEnv()
    environment = gymnasium_adapter.GymnasiumAdapter(gym_env, 7)
    environment.reset()
    environment.reset()
    self.assertEqual(gym_env.seeds, [7, None])

  def test_equal_seeds_equal_episodes(self):
    def firsts(seed):
      environment = gymnasium_adapter.make('CartPole-v1', seed)
      return [environment.reset().observation.tolist() for _ in range(2)]

    self.assertEqual(firsts(1), firsts(1))
    self.assertNotEqual(firsts(1), firsts(2))
    self.assertNotEqual(firsts(1)[0], firsts(1)[1])

  def test_vector_reward(self):
    gym_env = FakeGymEnv(reward=np.ones(1))
    environment = gymnasium_adapter.GymnasiumAdapter(gym_env, 0)
    environment.reset()
    with self.assertRaisesRegex(ValueError, r'reward.*\(\).*\(1,\)'):
      environment.step(0)

  def test_close(self):
    gym_env = FakeGymEnv()
    gymnasium_adapter.GymnasiumAdapter(gym_env, 0).close()
    self.assertTrue(gym_env.closed)

  @parameterized.parameters(-1, 0.5, None)
  def test_wrong_seed(self, seed):
    with self.assertRaisesRegex(ValueError, f'`seed`.*got {seed}'):
      gymnasium_adapter.GymnasiumAdapter(FakeGymEnv(), seed)


class MakeTest(parameterized.TestCase):
  @parameterized.named_parameters(
    ('version', 'CartPole-v77', r'CartPole-v77.*[Dd]id you mean.*CartPole-v1'),
    ('spelling', 'CartPol-v1', r'CartPol-v1.*[Dd]id you mean.*CartPole-v1'),
    ('malformed', 'Cart Pole!', '`environment_id`.*Cart Pole!'),
    ('namespace', 'nowhere/Pong-v5', '`environment_id`.*nowhere/Pong-v5'),
    ('atari', 'ALE/Nowhere-v5', 'atari:<game>'),
  )
  def test_unknown_id(self, environment_id, message):
    with self.assertRaisesRegex(ValueError, f'(?s){message}'):
      gymnasium_adapter.make(environment_id, seed=0)

  def test_missing_package(self):
    message = r"pip install 'repertory\[gymnasium\]'"
    with (
      mock.patch.dict(sys.modules, {'gymnasium': None}),
      self.assertRaisesRegex(ImportError, message),
    ):
      gymnasium_adapter.make('CartPole-v1', seed=0)


if __name__ == '__main__':
  absltest.main()
