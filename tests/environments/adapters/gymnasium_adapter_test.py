"""Tests of `environments/adapters/gymnasium_adapter.py`, within a batch."""

import re

import dm_env
import gymnasium
import numpy as np
import pytest

from repertory.environments.adapters import gymnasium_adapter
from repertory.environments.batches import batch
from support.environments import fake_gym_env


class WithoutSeed(fake_gym_env.FakeGymEnv):
  def reset(self):
    return self.observation, {}


class WithoutOptions(fake_gym_env.FakeGymEnv):
  def reset(self, seed=None):
    return self.observation, {}


class WithoutInfo(fake_gym_env.FakeGymEnv):
  def reset(self, *, seed=None, options=None):
    return self.observation


class FourResults(fake_gym_env.FakeGymEnv):
  def step(self, action):
    return self.observation, 0.0, False, {}


class Forgetful(fake_gym_env.FakeGymEnv):
  def step(self, action):
    pass


class Broken(fake_gym_env.FakeGymEnv):
  def reset(self, *, seed=None, options=None):
    raise TypeError("draw() got an unexpected keyword argument 'seed'")


def _limit(env):
  return gymnasium.wrappers.TimeLimit(gymnasium.wrappers.OrderEnforcing(env), 9)


def make(env):
  adapter = gymnasium_adapter.GymnasiumAdapter(env, 0)
  return batch.EnvironmentBatch([adapter])


_PAIR = np.zeros(2, np.float32)


@pytest.mark.parametrize(
  'wrap', [lambda env: env, _limit], ids=['bare', 'wrapped']
)
@pytest.mark.parametrize(
  ('env', 'message'),
  [
    (WithoutSeed(), 'WithoutSeed: `reset` must take the keywords `seed`'),
    # A pair that could be unpacked as an observation and its info.
    (WithoutInfo(observation=_PAIR), '`reset` must return an observation'),
    (WithoutInfo(observation=(0, 0)), r'`reset` must .* got \(0, 0\)'),
    (
      FourResults(),
      'FourResults: `step` must return five values.*done.*, got 4',
    ),
    (Forgetful(), 'Forgetful: `step` must return five values.* NoneType'),
  ],
  ids=['seed', 'array', 'tuple', 'four', 'none'],
)
def test_error_of_old_gym_gives_advice(wrap, env, message):
  environments = make(wrap(env))
  with pytest.raises(batch.EnvironmentContractError, match=message) as caught:
    for _ in range(2):
      environments.step(np.zeros(1, np.int32))
  assert '..' not in str(caught.value)
  assert 'keep to its specs' not in str(caught.value)


def test_options_are_required_if_a_wrapper_passes_them():
  make(WithoutOptions()).reset()
  with pytest.raises(ValueError, match="unexpected keyword argument 'options'"):
    make(_limit(WithoutOptions())).reset()


def test_other_errors_are_unchanged():
  with pytest.raises(TypeError, match=re.escape('draw() got')):
    make(Broken()).reset()


@pytest.mark.parametrize(
  ('name', 'value'),
  [('terminated', None), ('truncated', 'False'), ('terminated', np.zeros(2))],
)
def test_ends_that_are_not_booleans(name, value):
  environments = make(fake_gym_env.FakeGymEnv(**{name: value}))
  environments.reset()
  with pytest.raises(
    batch.EnvironmentContractError,
    match=f'{name}: expected True or False, found .* in their order\\.$',
  ):
    environments.step(np.zeros(1, np.int32))


@pytest.mark.parametrize('reward', [None, 'high', [1.0]])
def test_rewards_that_are_not_numbers(reward):
  env = fake_gym_env.FakeGymEnv(reward=reward)
  environment = gymnasium_adapter.GymnasiumAdapter(env, 0)
  environment.reset()
  with pytest.raises(
    batch.EnvironmentContractError,
    match=rf'^reward: .*float64.*{re.escape(repr(reward))}',
  ):
    environment.step(0)


def test_the_first_reset_is_seeded():
  env = fake_gym_env.FakeGymEnv()
  environment = gymnasium_adapter.GymnasiumAdapter(env, seed=3)
  environment.reset()
  environment.reset()
  assert env.seeds == [3, None]


@pytest.mark.parametrize(
  ('terminated', 'truncated', 'step_type', 'discount'),
  [
    (False, False, dm_env.StepType.MID, 1),
    (True, False, dm_env.StepType.LAST, 0),
    (False, True, dm_env.StepType.LAST, 1),
    (True, True, dm_env.StepType.LAST, 0),
    (np.array([True]), 0, dm_env.StepType.LAST, 0),
  ],
)
def test_ends(terminated, truncated, step_type, discount):
  environments = make(
    fake_gym_env.FakeGymEnv(
      reward=3, terminated=terminated, truncated=truncated
    )
  )
  environments.reset()
  timestep = environments.step(np.zeros(1, np.int32))
  assert timestep.step_type == step_type
  assert timestep.discount == discount
  assert timestep.reward == 3
  is_first = environments.step(np.zeros(1, np.int32)).first()
  assert is_first == timestep.last()


@pytest.mark.parametrize(
  ('environment_id', 'message'),
  [
    ('CartPol-v1', r"exist\. Did you mean 'CartPole-v1'"),
    ('Cart Pole!', '`environment_id`.*Cart Pole!'),
    ('ALE/Nowhere-v5', 'atari:<game>'),
  ],
)
def test_unknown_id(environment_id, message):
  with pytest.raises(ValueError, match=f'(?s){message}'):
    gymnasium_adapter.make_env(environment_id)
