"""Tests of `environments/wrappers/previous_action.py`."""

import numpy as np

from repertory.environments import conformance
from repertory.environments.batches import batch
from repertory.environments.wrappers import previous_action
from support.environments import scripted_environment

Scripted = scripted_environment.ScriptedEnvironment


def make_batch(*environments):
  return previous_action.PreviousActionAndReward(
    batch.EnvironmentBatch(environments)
  )


def make_actions(moves, force=0.0):
  return {
    'move': np.array(moves, np.int32),
    'force': np.full((len(moves), 2), force, np.float32),
  }


class TestNestedConformance(conformance.EnvironmentBatchConformance):
  is_random = False
  end_discounts = (0.0,)

  def make_batch(self, seeds):
    return make_batch(*(Scripted(2 + s % 100) for s in seeds))


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
  def test_reward_can_be_changed(self):
    environments = make_batch(Scripted(9), Scripted(9))
    environments.reset()
    timestep = environments.step(make_actions([0, 0]))
    timestep.reward[:] = -7
    np.testing.assert_array_equal(
      timestep.observation['previous_reward'], [1, 1]
    )
