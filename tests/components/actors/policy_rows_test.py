"""Tests of `components/actors/policy_rows.py`."""

import numpy as np
import pytest

from repertory.components import actors, specs
from repertory.components.runtime import compilation
from support.agents import acting_policies, counting_policy

_SPEC = specs.Array((2,), np.float32)


def make(policy=None, num_environments=9):
  policy = policy or counting_policy.CountingPolicy()
  states = actors.InitialStates(lambda seed: policy, num_environments, 0)
  return actors.PolicyRows(policy, _SPEC, states)


def act(rows, num_rows):
  rows.resize(num_rows)
  return rows.act(np.zeros([num_rows, 2], np.float32)).tolist()


class TestPolicyRows:
  def test_rows_count_for_themselves(self):
    rows = make()
    # (id + count) mod 3, with counts from 0.
    assert act(rows, 3) == [0, 1, 2]
    assert act(rows, 3) == [1, 2, 0]
    rows.begin(np.array([1]))
    assert rows.first.tolist() == [False, True, False]
    assert act(rows, 3) == [2, 1, 1]
    assert act(rows, 3) == [0, 2, 2]
    rows.begin()
    assert act(rows, 3) == [0, 1, 2]

  def test_removed_rows_begin_an_episode_when_they_come_back(self):
    rows = make()
    assert act(rows, 3) == [0, 1, 2]
    assert act(rows, 1) == [1]
    # Row 0 has counted to 2.
    assert act(rows, 2) == [2, 1]
    assert act(rows, 4) == [0, 2, 2, 0]

  def test_acts_eagerly(self):
    with compilation.eagerly(True):
      rows = make()
      assert act(rows, 1) == [0]
      # Compiled for several rows only now.
      assert act(rows, 3) == [1, 1, 2]

  @pytest.mark.parametrize('name', sorted(acting_policies.MAKERS))
  def test_acts_like_an_actor(self, name):
    spec = acting_policies.SPEC
    policy = acting_policies.MAKERS[name](spec, 3)
    states = actors.InitialStates(lambda seed: policy, 3, 0)
    rows = actors.PolicyRows(policy, spec.observations, states)
    assert rows.has_memory == (name != 'epsilon_greedy')
    rows.resize(3)
    actor = actors.PolicyActor(policy, spec.observations, range(3))
    random = np.random.default_rng(0)
    for _ in range(30):
      observation = random.normal(size=[3, 3]).astype(np.float32)
      expected = actor.select_action(observation)
      actor._step_type = np.ones([3], np.int32)
      np.testing.assert_array_equal(rows.act(observation), expected)


class TestInitialStates:
  def test_more_rows_than_environments(self):
    def make_policy(seed):
      return acting_policies.make_epsilon_greedy(acting_policies.SPEC, 2, seed)

    states = actors.InitialStates(make_policy, 2, seed=3)
    epsilon, random, steps = states.leaves(5)
    # ε belongs to the environment, and the random numbers to the row.
    np.testing.assert_array_equal(epsilon, epsilon[[0, 1, 0, 1, 0]])
    assert epsilon[0] != epsilon[1]
    assert len(set(random.tolist())) == 5
    assert steps.tolist() == [0] * 5
    for leaf, first in zip(states.leaves(5), states.leaves(3)):
      np.testing.assert_array_equal(leaf[:3], first)
    other = actors.InitialStates(make_policy, 2, seed=4)
    assert not set(random.tolist()) & set(other.leaves(5)[1].tolist())
