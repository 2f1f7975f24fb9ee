"""Tests of environments with the interface of old Gym, or with invalid ends."""

import re

import fake_gym_env
import gymnasium
import numpy as np
import pytest

from repertory.environments.adapters import gymnasium_adapter, gymnasium_sources
from repertory.environments.batches import batch, vector_batch


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


class Broken(fake_gym_env.FakeGymEnv):
  def reset(self, *, seed=None, options=None):
    raise TypeError("draw() got an unexpected keyword argument 'seed'")


def _limit(env):
  return gymnasium.wrappers.TimeLimit(gymnasium.wrappers.OrderEnforcing(env), 9)


def _make_loop(env):
  return vector_batch.VectorBatch(gymnasium_sources.GymnasiumLoop([env], [0]))


def _make_single(env):
  adapter = gymnasium_adapter.GymnasiumAdapter(env, 0)
  return batch.EnvironmentBatch([adapter])


@pytest.fixture(
  params=[_make_loop, _make_single], ids=['loop', 'single'], name='make'
)
def _make(request):
  return request.param


_PAIR = np.zeros(2, np.float32)


@pytest.mark.parametrize(
  'wrap', [lambda env: env, _limit], ids=['bare', 'wrapped']
)
@pytest.mark.parametrize(
  ('env', 'message'),
  [
    (WithoutSeed(), 'WithoutSeed: `reset` must take the keyword `seed`'),
    (WithoutInfo(), '`reset` must return an observation and a dictionary'),
    # A pair that could be unpacked as an observation and its info.
    (WithoutInfo(observation=_PAIR), '`reset` must return an observation'),
    (WithoutInfo(observation=(0, 0)), r'`reset` must .* got \(0, 0\)'),
    (
      FourResults(),
      'FourResults: `step` must return five values.*, got 4.*done',
    ),
  ],
  ids=['seed', 'info', 'array', 'tuple', 'four'],
)
def test_error_of_old_gym_gives_advice(make, wrap, env, message):
  environments = make(wrap(env))
  with pytest.raises(batch.EnvironmentContractError, match=message) as caught:
    for _ in range(2):
      environments.step(np.zeros(1, np.int32))
  assert '..' not in str(caught.value)
  assert 'keep to its specs' not in str(caught.value)


def test_options_are_required_if_a_wrapper_passes_them(make):
  make(WithoutOptions()).reset()
  with pytest.raises(ValueError, match='must take the keyword `options`'):
    make(_limit(WithoutOptions())).reset()


def test_other_errors_are_unchanged(make):
  with pytest.raises(TypeError, match=re.escape('draw() got')):
    make(Broken()).reset()


@pytest.mark.parametrize('name', ['terminated', 'truncated'])
@pytest.mark.parametrize(
  'value', [None, 'False', 2, np.zeros(2, bool)], ids=str
)
def test_ends_that_are_not_booleans(make, name, value):
  environments = make(fake_gym_env.FakeGymEnv(**{name: value}))
  environments.reset()
  with pytest.raises(
    batch.EnvironmentContractError,
    match=f'{name}: expected True or False, found .* in their order\\.$',
  ):
    environments.step(np.zeros(1, np.int32))


def test_observations_out_of_their_space(make):
  environments = make(fake_gym_env.FakeGymEnv(observation=5))
  with pytest.raises(
    batch.EnvironmentContractError, match=r'found 5\.($| Make the environment)'
  ):
    environments.reset()


@pytest.mark.parametrize(
  'value', [True, np.True_, 1, np.array([True])], ids=repr
)
def test_ends(make, value):
  environments = make(fake_gym_env.FakeGymEnv(terminated=value))
  environments.reset()
  timestep = environments.step(np.zeros(1, np.int32))
  assert (timestep.step_type[0], timestep.discount[0]) == (2, 0)


@pytest.mark.parametrize('value', [None, np.zeros(2, int)], ids=['none', 'int'])
def test_ends_of_vector_environments(value):
  envs = gymnasium.make_vec('CartPole-v1', 2, vectorization_mode='sync')
  environments = vector_batch.VectorBatch(
    gymnasium_sources.GymnasiumVectorSource(envs, seed=0)
  )
  observed = environments.reset().observation
  envs.step = lambda actions: (observed, np.ones(2), value, value, {})
  with pytest.raises(
    batch.EnvironmentContractError, match='terminated: expected an array of bo'
  ):
    environments.step(np.zeros(2, np.int32))
