"""Tests of `environments/games/memory_chain.py`."""

import itertools
import unittest

import dm_env
import numpy as np
import pytest
from dm_env import specs, test_utils

from repertory.environments import wrappers
from repertory.environments.games import memory_chain

FIRST, MID, LAST = dm_env.StepType


# dm_env's mixin calls methods of unittest's TestCase.
class TestMemoryChainConformance(
  test_utils.EnvironmentTestMixin, unittest.TestCase
):
  def make_object_under_test(self):
    return memory_chain.MemoryChain(length=2, seed=1)

  def make_action_sequence(self):
    for action in (0, 1, 1) * 5:
      yield np.array(action, np.int32)


def play(environment, policy):
  """Plays an episode with a policy; returns all timesteps and actions."""
  timesteps = [environment.reset()]
  while not timesteps[-1].last():
    timesteps.append(environment.step(policy(timesteps[-1].observation)))
  return timesteps


def find_cue(timestep):
  """Returns the cue that the first timestep of an episode shows."""
  return int(np.argmax(timestep.observation[:2]))


def reset_to(environment, cue):
  """Starts episodes until one has this cue."""
  for _ in range(100):
    if find_cue(environment.reset()) == cue:
      return
  raise ValueError(f'Cue {cue} did not come up in 100 episodes.')


def test_specs():
  environment = memory_chain.MemoryChain()
  assert environment.observation_spec() == specs.BoundedArray(
    (3,), np.float32, 0, 1
  )
  assert environment.action_spec() == specs.DiscreteArray(2, np.int32)
  assert environment.reward_spec() == specs.BoundedArray((), np.float32, -1, 1)
  assert environment.discount_spec() == specs.BoundedArray((), np.float32, 0, 1)


@pytest.mark.parametrize('cue', [0, 1])
@pytest.mark.parametrize('answer', [0, 1])
def test_episode(cue, answer):
  environment = memory_chain.MemoryChain(length=3)
  reset_to(environment, cue)
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


def test_cue_is_one_hot():
  environment = memory_chain.MemoryChain()
  for _ in range(20):
    assert environment.reset().observation.tolist() in [[1, 0, 0], [0, 1, 0]]


def test_shortest_chain():
  environment = memory_chain.MemoryChain(length=1)
  timesteps = play(environment, lambda observation: 0)
  assert [t.step_type for t in timesteps] == [FIRST, MID, LAST]
  assert [t.observation[2] for t in timesteps] == [0, 1, 0]


def test_length_is_ten_by_default():
  timesteps = play(memory_chain.MemoryChain(), lambda observation: 0)
  assert len(timesteps) == 1 + 11
  assert timesteps[10].observation[2] == 1


def test_cues_are_uniform():
  environment = memory_chain.MemoryChain(length=1, seed=5)
  cues = [find_cue(environment.reset()) for _ in range(1000)]
  # Four standard deviations, each √(1000 / 4) = 16.
  assert 500 - 64 <= sum(cues) <= 500 + 64


def test_seed():
  def cues(seed):
    environment = memory_chain.MemoryChain(length=1, seed=seed)
    return [find_cue(environment.reset()) for _ in range(50)]

  assert cues(3) == cues(3)
  assert cues(3) != cues(4)


def test_no_policy_without_memory_gains():
  # All memoryless policies: one action each for the cue 0, the cue 1, no cue,
  # and the query.
  for answers in itertools.product((0, 1), repeat=4):
    environment = memory_chain.MemoryChain(length=2)

    def policy(observation, answers=answers):
      kind = int(np.dot(observation, [1, 2, 3]))  # 0 is nothing.
      return answers[kind]

    rewards = {}
    for _ in range(50):
      timesteps = play(environment, policy)
      rewards[find_cue(timesteps[0])] = timesteps[-1].reward
    # Both cues are equally likely, so the mean return is (1 - 1) / 2 = 0.
    assert sorted(rewards.values()) == [-1, 1]


@pytest.mark.parametrize(('num_frames', 'mean_return'), [(4, 1.0), (3, 0.0)])
def test_stack_of_frames_is_memory(num_frames, mean_return):
  # Three steps later, the cue is the fourth frame from the end.
  environment = wrappers.FrameStack(
    memory_chain.MemoryChain(length=3), num_frames
  )
  returns = {}
  for _ in range(50):
    timesteps = play(environment, lambda frames: int(frames[1, 0]))
    returns[find_cue(timesteps[0])] = timesteps[-1].reward
  assert len(returns) == 2
  assert sum(returns.values()) / 2 == mean_return


def test_observations_are_fresh():
  environment = memory_chain.MemoryChain()
  first = environment.reset().observation
  copy = first.copy()
  environment.step(0)
  np.testing.assert_array_equal(first, copy)


@pytest.mark.parametrize(
  ('arguments', 'message'),
  [
    pytest.param({'length': 0}, '`length`.*at least 1, got 0', id='length'),
    pytest.param({'length': 2.5}, '`length`.*integer.*2.5', id='fraction'),
    pytest.param({'length': True}, '`length`.*integer.*True', id='boolean'),
    pytest.param({'seed': -1}, '`seed`.*at least 0, got -1', id='seed'),
  ],
)
def test_wrong_argument(arguments, message):
  with pytest.raises(ValueError, match=message):
    memory_chain.MemoryChain(**arguments)


@pytest.mark.parametrize('action', [2, -1, 0.5, None])
def test_wrong_action(action):
  # Invalid actions raise also before the query.
  environment = memory_chain.MemoryChain()
  environment.reset()
  with pytest.raises(ValueError, match=f'`action`.*0 or 1, got {action}'):
    environment.step(action)
