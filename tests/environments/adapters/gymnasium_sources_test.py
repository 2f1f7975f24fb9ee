"""Tests of `environments/adapters/gymnasium_sources.py`."""

from unittest import mock

import dm_env
import gymnasium
import numpy as np
import pytest
from gymnasium.envs.classic_control import cartpole

from repertory.environments.adapters import gymnasium_sources
from repertory.environments.batches import batch, vector_batch

_FIRST, _MID, _LAST = (int(step_type) for step_type in dm_env.StepType)


def make_vector(size=2):
  """Returns a vector environment, and its batch."""
  envs = gymnasium.make_vec('CartPole-v1', size, vectorization_mode='sync')
  spaces = envs.single_observation_space, envs.single_action_space
  return envs, vector_batch.VectorBatch(
    gymnasium_sources.VectorEnvSource(envs, size, spaces, seed=0)
  )


class TestVector:
  @pytest.mark.parametrize(
    ('environment_id', 'size', 'expected'),
    [
      ('CartPole-v1', 7, False),
      ('CartPole-v1', 8, True),
      ('gymnasium:CartPole-v1', 8, True),
    ],
  )
  def test_is_used_for_large_batches(self, environment_id, size, expected):
    source = gymnasium_sources.make_source(environment_id, range(size))
    assert (source is not None) == expected

  def test_those_of_jax_are_left_alone(self):
    # While a slot restarts, all others are blocked.
    metadata = cartpole.CartPoleVectorEnv.metadata
    with mock.patch.dict(metadata, jax=True):
      assert gymnasium_sources.make_source('CartPole-v1', range(8)) is None

  def test_results_of_a_restart_are_ignored(self):
    envs, environments = make_vector(3)
    environments.reset()
    # Terminated, truncated and neither; then all of them in restarted slots.
    terminated, truncated = np.eye(3, dtype=bool)[:2]
    rewards = np.array([5.0, 6.0, 7.0])
    outcomes = iter(
      [(terminated, truncated), (terminated | truncated, truncated)]
    )
    envs.step = lambda actions: (
      np.zeros((3, 4), np.float32),
      rewards,
      *next(outcomes),
      {},
    )
    end = environments.step(np.zeros(3, np.int32))
    np.testing.assert_array_equal(end.step_type, [_LAST, _LAST, _MID])
    np.testing.assert_array_equal(end.discount, [0, 1, 1])
    np.testing.assert_array_equal(end.reward, [5, 6, 7])
    rewards = np.array([np.nan, 6.0, 7.0])
    start = environments.step(np.zeros(3, np.int32))
    np.testing.assert_array_equal(start.step_type, [_FIRST, _FIRST, _MID])
    np.testing.assert_array_equal(start.discount, [1, 1, 1])
    np.testing.assert_array_equal(start.reward, [0, 0, 7])

  def test_info_of_a_slot(self):
    envs, environments = make_vector()
    observed = environments.reset().observation
    ends, numbers = np.zeros(2, bool), np.array([0.0, 7.0])
    infos = {'lives': numbers + 1, 'score': numbers, '_score': numbers > 0}
    envs.step = lambda actions: (observed, np.ones(2), ends, ends, infos)
    environments.step(np.zeros(2, np.int32))
    assert environments.info(0) == {'lives': 1.0}
    assert environments.info(1) == {'lives': 8.0, 'score': 7.0}

  @pytest.mark.parametrize(
    ('shape', 'reward', 'message'),
    [
      ((2, 4), 1e39, r'Slot 1, step 1 .*reward.*float32.*1e\+39'),
      ((1, 4), 1.0, r'observation: expected .*\(2, 4\).*\(1, 4\)'),
    ],
  )
  def test_invalid_result(self, shape, reward, message):
    envs, environments = make_vector()
    environments.reset()
    envs.step = lambda actions: (
      np.zeros(shape, np.float32),
      np.array([1.0, reward]),
      np.zeros(2, bool),
      np.zeros(2, bool),
      {},
    )
    with pytest.raises(batch.EnvironmentContractError, match=message):
      environments.step(np.zeros(2, np.int32))
