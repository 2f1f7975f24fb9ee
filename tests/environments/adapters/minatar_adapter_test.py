"""Tests that a batch of MinAtar games equals the games themselves."""

import numpy as np
import pytest

from repertory.environments.adapters import minatar_adapter
from repertory.environments.batches import vector_batch
from repertory.environments.values import argument_checks

minatar = pytest.importorskip('minatar')

_SEEDS = (0, 7)
_STEPS = 400


def _make_twin(game: str, settings: dict, seed: int):
  twin = minatar.Environment(
    game, settings['sticky_actions'], settings['ramping']
  )
  twin.seed(argument_checks.fold_seed(seed))
  twin.reset()
  return twin


@pytest.mark.parametrize(
  ('game', 'full_actions'), [('asterix', True), ('breakout', False)]
)
def test_equals_the_games(game, full_actions):
  settings = {o.name: o.default for o in minatar_adapter.OPTIONS}
  settings['full_actions'] = full_actions
  source = minatar_adapter.MinAtarSource(game, settings, _SEEDS)
  batch = vector_batch.VectorBatch(source)
  twins = [_make_twin(game, settings, seed) for seed in _SEEDS]
  moves = list(range(6)) if full_actions else twins[0].minimal_action_set()
  assert batch.action_spec().num_values == len(moves)
  timestep = batch.reset()
  random = np.random.default_rng(1)
  restarts, rewards = [False] * len(twins), 0.0
  for _ in range(_STEPS):
    for slot, twin in enumerate(twins):
      np.testing.assert_array_equal(timestep.observation[slot], twin.state())
    actions = random.integers(len(moves), size=len(twins)).astype(np.int32)
    timestep = batch.step(actions)
    for slot, twin in enumerate(twins):
      found = [
        part[slot].item()
        for part in (timestep.step_type, timestep.reward, timestep.discount)
      ]
      if restarts[slot]:
        twin.reset()
        restarts[slot] = False
        assert found == [0, 0.0, 1.0]
        continue
      reward, restarts[slot] = twin.act(moves[actions[slot]])
      rewards += reward
      assert found == ([2, reward, 0.0] if restarts[slot] else [1, reward, 1.0])
  assert rewards
