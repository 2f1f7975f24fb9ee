"""Tests of `environments/games/memory_chain.py`."""

import dm_env
import numpy as np
import pytest

from repertory.environments.games import memory_chain

FIRST, MID, LAST = dm_env.StepType


def find_cue(timestep):
  """Returns the cue that the first timestep of an episode shows."""
  return int(np.argmax(timestep.observation[:2]))


def reset_to(environment, cue):
  """Starts episodes until one has this cue."""
  for _ in range(100):
    if find_cue(environment.reset()) == cue:
      return
  raise ValueError(f'Cue {cue} did not come up in 100 episodes.')


@pytest.mark.parametrize(('cue', 'answer'), [(0, 0), (0, 1), (1, 1)])
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


@pytest.mark.parametrize('action', [2, 0.5])
def test_wrong_action(action):
  # Invalid actions raise also before the query.
  environment = memory_chain.MemoryChain()
  environment.reset()
  with pytest.raises(ValueError, match=f'`action`.*0 or 1, got {action}'):
    environment.step(action)
