"""Tests of `components/actors/adapters.py`."""

import acme
import dm_env
import numpy as np
import pytest
from acme.utils import loggers as acme_loggers

from repertory.components import actors
from repertory.components.actors import environment_loop
from repertory.environments.batches import batch
from repertory.environments.games import catch
from support.agents import counting_policy
from support.replay import acme_actor, recording_adder


def make_catch_batch(num_environments):
  return batch.EnvironmentBatch(
    [catch.Catch(seed=i) for i in range(num_environments)]
  )


class TestUnbatched:
  def test_runs_in_acmes_loop(self):
    adder = recording_adder.RecordingAdder()
    environment = catch.Catch(seed=3)
    actor = actors.PolicyActor(
      counting_policy.CountingPolicy(),
      environment.observation_spec(),
      [2],
      adder=adder,
    )
    logger = acme_loggers.InMemoryLogger()
    loop = acme.EnvironmentLoop(
      environment, actors.Unbatched(actor), logger=logger
    )
    loop.run(num_episodes=30)
    rows = logger.data
    assert len(rows) == 30
    assert {row['episode_length'] for row in rows} == {9}
    # The same actions in every episode: some balls are caught, some not.
    assert {float(row['episode_return']) for row in rows} == {-1, 1}
    self.check_calls(adder.calls, rows)

  def check_calls(self, calls, rows):
    assert len(calls) == 30 * 10
    for i, row in enumerate(rows):
      kind, timestep = calls[10 * i]
      assert kind == 'first'
      assert timestep.step_type.tolist() == [dm_env.StepType.FIRST]
      assert timestep.reward.tolist() == [0]
      assert timestep.discount.tolist() == [1]
      total = 0
      for step in range(9):
        action, timestep, extras = calls[10 * i + 1 + step]
        # The policy of id 2 counts from 0 in each episode.
        assert action.tolist() == [(2 + step) % 3]
        assert extras['count'].tolist() == [step]
        assert timestep.observation.shape == (1, 10, 5)
        total += timestep.reward[0]
      assert timestep.step_type.tolist() == [dm_env.StepType.LAST]
      assert total == row['episode_return']
      assert timestep.discount.tolist() == [0]


class TestBatched:
  @pytest.mark.parametrize('batch_size', [1, 3])
  def test_acmes_actors_run_in_our_loop(self, batch_size):
    acting = [acme_actor.AcmeActor(seed=i) for i in range(batch_size)]
    loop = environment_loop.EnvironmentLoop(
      make_catch_batch(batch_size), actors.Batched(acting)
    )
    episodes = []
    # Ten timesteps an episode, of which one is the first: 4 episodes and a half
    # in each slot.
    for _ in range(9 + 3 * 10 + 5):
      episodes += loop.step()[1]
    assert len(episodes) == 4 * batch_size
    for slot, actor in enumerate(acting):
      assert actor.num_episodes == 5
      assert actor.num_updates == 44
      assert [
        e.episode_return for e in episodes if e.slot == slot
      ] == actor.returns
      assert set(np.abs(actor.returns)) == {1}
      # Steps of the episodes, without those that only start one.
      assert len(actor.actions) == 4 * 9 + 4

  def test_fresh_start_right_after_an_end(self):
    # `run_episodes` resets when the last episode has ended. The actors must
    # select the new episodes' first actions.
    acting = [acme_actor.AcmeActor(seed=i) for i in range(2)]
    loop = environment_loop.EnvironmentLoop(
      make_catch_batch(2), actors.Batched(acting)
    )
    for _ in range(3):
      assert len(loop.run_episodes(2)) == 2
    for actor in acting:
      assert actor.num_episodes == 3
      assert len(actor.actions) == 3 * 9

  def test_needs_an_actor(self):
    with pytest.raises(ValueError, match='one actor per slot, got none'):
      actors.Batched([])
