"""Tests of `environments/wrappers/previous_action.py`."""

import dm_env
import numpy as np
import pytest
import tree
from dm_env import specs

from repertory.environments import conformance
from repertory.environments.batches import batch
from repertory.environments.wrappers import environment_wrapper, previous_action
from support.environments import scripted_environment

Scripted = scripted_environment.ScriptedEnvironment
FIRST = dm_env.StepType.FIRST


def make_batch(*environments):
  return previous_action.PreviousActionAndReward(
    batch.EnvironmentBatch(environments)
  )


def make_actions(moves, force=0.0):
  return {
    'move': np.array(moves, np.int32),
    'force': np.full((len(moves), 2), force, np.float32),
  }


def validate(spec, nest):
  """Compares every row of a batched nest with the specs."""

  def check(leaf_spec, leaf):
    for row in leaf:
      leaf_spec.validate(row)

  tree.map_structure(check, spec, nest)


class SlowTwin(environment_wrapper.EnvironmentWrapper):
  """Slow reference for one environment whose specs allow 0 everywhere."""

  def reset(self):
    return self._extend(self._environment.reset(), None)

  def step(self, action):
    return self._extend(self._environment.step(action), action)

  def observation_spec(self):
    return {
      'observation': self._environment.observation_spec(),
      'previous_action': self._environment.action_spec(),
      'previous_reward': self._environment.reward_spec(),
    }

  def _extend(self, timestep, action):
    reward = timestep.reward
    if timestep.first():
      reward = np.float32(0)
      action = tree.map_structure(
        lambda s: s.generate_value() * 0, self.action_spec()
      )
    return timestep._replace(
      observation={
        'observation': timestep.observation,
        'previous_action': action,
        'previous_reward': reward,
      }
    )


class TestNestedConformance(conformance.EnvironmentBatchConformance):
  def make_environment(self, seed):
    return SlowTwin(Scripted(length=2 + seed))

  def make_batch(self, seeds):
    return make_batch(*(Scripted(2 + s) for s in seeds))


class TestScripted:
  def test_action_and_reward_led_here(self):
    # Slot 0 ends after two steps, slot 1 after three; the reward of step t of
    # an episode is t.
    environments = make_batch(Scripted(2), Scripted(3))
    timesteps = [environments.reset()]
    for t in range(1, 5):
      actions = make_actions([t % 4, 3 - t % 4], force=0.1 * t)
      timesteps.append(environments.step(actions))
    np.testing.assert_array_equal(
      [t.step_type for t in timesteps],
      [[0, 0], [1, 1], [2, 1], [0, 2], [1, 0]],
    )
    observations = [t.observation for t in timesteps]
    np.testing.assert_array_equal(
      [o['previous_action']['move'] for o in observations],
      # The actions of ended slots, 3 of slot 0 and 3 of slot 1, are ignored.
      [[0, 0], [1, 2], [2, 1], [0, 0], [0, 0]],
    )
    np.testing.assert_allclose(
      [o['previous_action']['force'][:, 0] for o in observations],
      [[0, 0], [0.1, 0.1], [0.2, 0.2], [0, 0.3], [0.4, 0]],
      rtol=1e-6,
    )
    np.testing.assert_array_equal(
      [o['previous_reward'] for o in observations],
      [[0, 0], [1, 1], [2, 2], [0, 3], [1, 0]],
    )

  def test_step_before_reset_needs_no_actions(self):
    observation = make_batch(Scripted(), Scripted()).step(None).observation
    np.testing.assert_array_equal(
      observation['previous_action']['move'], [0, 0]
    )

  def test_array_likes_are_cast(self):
    environments = make_batch(Scripted(), Scripted())
    environments.reset()
    actions = {'move': [1, 3], 'force': np.full((2, 2), 0.5)}  # int64, float64
    found = environments.step(actions).observation['previous_action']
    assert found['move'].dtype == np.int32
    assert found['force'].dtype == np.float32
    np.testing.assert_array_equal(found['move'], [1, 3])
    np.testing.assert_array_equal(found['force'], np.full((2, 2), 0.5))


class TestAliasing:
  def test_actions_stay_as_they_are(self):
    environments = make_batch(Scripted(1), Scripted(9))
    environments.reset()
    environments.step(make_actions([1, 2]))  # Slot 0 ends, and then starts.
    actions = make_actions([3, 3], force=0.5)
    environments.step(actions)
    tree.map_structure(
      np.testing.assert_array_equal, actions, make_actions([3, 3], force=0.5)
    )

  def test_reward_can_be_changed(self):
    environments = make_batch(Scripted(9), Scripted(9))
    environments.reset()
    timestep = environments.step(make_actions([0, 0]))
    timestep.reward[:] = -7
    np.testing.assert_array_equal(
      timestep.observation['previous_reward'], [1, 1]
    )


class Bounded(Scripted):
  """Has a reward in [1, 9] and a given action spec."""

  def __init__(self, action_spec, length=2):
    super().__init__(length)
    self._action_spec = action_spec

  def action_spec(self):
    return self._action_spec

  def reward_spec(self):
    return specs.BoundedArray((), np.float32, 1, 9, name='prize')


class TestBounds:
  @pytest.mark.parametrize(
    ('spec', 'actions', 'expected'),
    [
      pytest.param(
        specs.BoundedArray((2,), np.float32, [2, -1], [3, 1]),
        [[2.5, 0.5]] * 2,
        [2, 0],
        id='above',
      ),
      pytest.param(
        specs.Array((2,), np.float32), [[1, 2], [3, 4]], [0, 0], id='unbounded'
      ),
    ],
  )
  def test_first_action(self, spec, actions, expected):
    environments = make_batch(Bounded(spec, 1), Bounded(spec, 2))
    actions = np.array(actions, spec.dtype)
    timesteps = [environments.reset()]
    timesteps += [environments.step(actions) for _ in range(4)]
    observation_spec = environments.observation_spec()
    num_firsts = 0
    for timestep in timesteps:
      validate(observation_spec, timestep.observation)
      for slot in range(2):
        found = timestep.observation['previous_action'][slot]
        first = timestep.step_type[slot] == FIRST
        num_firsts += first
        np.testing.assert_array_equal(
          found, expected if first else actions[slot]
        )
    # Slot 0 starts in steps 0, 2, 4 and slot 1 in 0, 3.
    assert num_firsts == 5

  def test_bounds_are_widened(self):
    spec = specs.BoundedArray((), np.float32, -9, -1, name='prize')

    class Prize(Scripted):
      def reward_spec(self):
        return spec

    environments = make_batch(Prize())
    found = environments.observation_spec()['previous_reward']
    assert found == specs.BoundedArray((), np.float32, -9, 0)
    assert found.name == 'prize'
    # The bounds of the reward itself are unchanged.
    assert environments.reward_spec() == spec
