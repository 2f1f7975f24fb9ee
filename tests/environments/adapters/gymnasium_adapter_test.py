"""Tests of `environments/adapters/gymnasium_adapter.py`."""

import sys
import unittest
from unittest import mock

import dm_env
import fake_gym_env
import numpy as np
import pytest
from dm_env import test_utils

from repertory.environments.adapters import gymnasium_adapter
from repertory.environments.registry import registry

FakeGymEnv = fake_gym_env.FakeGymEnv


# dm_env's mixin calls methods of unittest's TestCase.
class TestCartPole(test_utils.EnvironmentTestMixin, unittest.TestCase):
  def make_object_under_test(self):
    return gymnasium_adapter.make('CartPole-v1', seed=0)


class TestPendulum(test_utils.EnvironmentTestMixin, unittest.TestCase):
  def make_object_under_test(self):
    return gymnasium_adapter.make('Pendulum-v1', seed=0)


class TestSinglePrecisionTaxi(
  test_utils.EnvironmentTestMixin, unittest.TestCase
):
  def make_object_under_test(self):
    return registry.make('gym:Taxi-v4', seed=0)


class TestSteps:
  @pytest.mark.parametrize(
    ('terminated', 'truncated', 'step_type', 'discount'),
    [
      pytest.param(False, False, dm_env.StepType.MID, 1, id='continues'),
      pytest.param(True, False, dm_env.StepType.LAST, 0, id='terminated'),
      pytest.param(False, True, dm_env.StepType.LAST, 1, id='truncated'),
      pytest.param(True, True, dm_env.StepType.LAST, 0, id='both'),
    ],
  )
  def test_end(self, terminated, truncated, step_type, discount):
    environment = gymnasium_adapter.GymnasiumAdapter(
      FakeGymEnv(reward=3, terminated=terminated, truncated=truncated), 0
    )
    environment.reset()
    timestep = environment.step(0)
    assert timestep.step_type == step_type
    assert timestep.discount == discount
    assert timestep.reward == 3
    assert environment.step(0).first() == timestep.last()

  def test_time_limit_of_gymnasium_keeps_the_discount(self):
    environment = gymnasium_adapter.make('Pendulum-v1', seed=0)
    timestep = environment.reset()
    num_steps = 0
    while not timestep.last():
      timestep = environment.step(np.zeros(1, np.float32))
      num_steps += 1
    assert (num_steps, timestep.discount) == (200, 1.0)

  def test_seed_is_used_once(self):
    gym_env = FakeGymEnv()
    environment = gymnasium_adapter.GymnasiumAdapter(gym_env, 7)
    environment.reset()
    environment.reset()
    assert gym_env.seeds == [7, None]

  def test_equal_seeds_equal_episodes(self):
    def firsts(seed):
      environment = gymnasium_adapter.make('CartPole-v1', seed)
      return [environment.reset().observation.tolist() for _ in range(2)]

    assert firsts(1) == firsts(1)
    assert firsts(1) != firsts(2)
    assert firsts(1)[0] != firsts(1)[1]

  def test_vector_reward(self):
    gym_env = FakeGymEnv(reward=np.ones(1))
    environment = gymnasium_adapter.GymnasiumAdapter(gym_env, 0)
    environment.reset()
    with pytest.raises(ValueError, match=r'reward.*\(\).*\(1,\)'):
      environment.step(0)

  def test_close(self):
    gym_env = FakeGymEnv()
    gymnasium_adapter.GymnasiumAdapter(gym_env, 0).close()
    assert gym_env.closed

  @pytest.mark.parametrize('seed', [-1, 0.5, None])
  def test_wrong_seed(self, seed):
    with pytest.raises(ValueError, match=f'`seed`.*got {seed}'):
      gymnasium_adapter.GymnasiumAdapter(FakeGymEnv(), seed)


class TestMake:
  @pytest.mark.parametrize(
    ('environment_id', 'message'),
    [
      pytest.param(
        'CartPole-v77',
        r'CartPole-v77.*[Dd]id you mean.*CartPole-v1',
        id='version',
      ),
      pytest.param(
        'CartPol-v1', r'CartPol-v1.*[Dd]id you mean.*CartPole-v1', id='spelling'
      ),
      pytest.param(
        'Cart Pole!', '`environment_id`.*Cart Pole!', id='malformed'
      ),
      pytest.param(
        'nowhere/Pong-v5', '`environment_id`.*nowhere/Pong-v5', id='namespace'
      ),
      pytest.param('ALE/Nowhere-v5', 'atari:<game>', id='atari'),
    ],
  )
  def test_unknown_id(self, environment_id, message):
    with pytest.raises(ValueError, match=f'(?s){message}'):
      gymnasium_adapter.make(environment_id, seed=0)

  def test_missing_package(self):
    message = r"pip install 'repertory\[gymnasium\]'"
    with (
      mock.patch.dict(sys.modules, {'gymnasium': None}),
      pytest.raises(ImportError, match=message),
    ):
      gymnasium_adapter.make('CartPole-v1', seed=0)
