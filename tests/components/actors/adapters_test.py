"""Tests of `components/actors/adapters.py`."""

import signal

import acme
import dm_env
import numpy as np
import pytest
from acme.utils import loggers as acme_loggers

from repertory.components import actors, core
from repertory.components.actors import environment_loop
from repertory.environments import wrappers
from repertory.environments.batches import batch
from repertory.environments.games import catch
from support.agents import counting_policy
from support.replay import acme_actor, recording_adder
from support.system import stacks


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

  @pytest.mark.skipif(
    stacks.HAS_LAUNCHPAD,
    reason='Acme with Launchpad heeds no Ctrl-C outside of its programs',
  )
  def test_acmes_loop_ends_with_ctrl_c(self):
    class Interrupting(acme_loggers.InMemoryLogger):
      def write(self, data):
        super().write(data)
        if len(self.data) == 3:
          signal.raise_signal(signal.SIGINT)

    environment = catch.Catch(seed=3)
    policy = counting_policy.CountingPolicy()
    actor = actors.PolicyActor(policy, environment.observation_spec(), [2])
    logger = Interrupting()
    loop = acme.EnvironmentLoop(
      environment, actors.Unbatched(actor), logger=logger
    )
    with pytest.raises(KeyboardInterrupt):
      loop.run()
    assert len(logger.data) == 3

  def check_calls(self, calls, rows):
    assert len(calls) == 30 * 10
    for i, row in enumerate(rows):
      kind, timestep = calls[10 * i]
      assert kind == 'first'
      assert timestep.step_type.tolist() == [dm_env.StepType.FIRST]
      assert timestep.reward.tolist() == [0]
      assert timestep.discount.tolist() == [1]
      assert timestep.observation.shape == (1, 10, 5)
      rewards, discounts = [], []
      for step in range(9):
        action, timestep, extras = calls[10 * i + 1 + step]
        # The policy of id 2 counts from 0 in each episode.
        assert action.tolist() == [(2 + step) % 3]
        assert extras['count'].tolist() == [step]
        assert timestep.observation.shape == (1, 10, 5)
        assert timestep.reward.shape == (1,)
        assert timestep.reward.dtype == np.float32
        # The ball is in row step + 1.
        assert timestep.observation[0, step + 1].max() == 1
        rewards.append(timestep.reward[0])
        discounts.append(timestep.discount[0])
      assert timestep.step_type.tolist() == [dm_env.StepType.LAST]
      assert sum(rewards) == row['episode_return']
      assert discounts == [1] * 8 + [0]

  def test_nests_lose_and_gain_the_batch_axis(self):
    seen = []

    class Nested(core.Actor):
      def select_action(self, observation):
        seen.append(observation)
        return {'move': np.array([3]), 'force': np.array([[1.0, 2.0]])}

      def observe_first(self, timestep):
        seen.append(timestep)

      def observe(self, action, next_timestep):
        seen.append((action, next_timestep))

      def update(self, wait=False):
        seen.append(wait)

    actor = actors.Unbatched(Nested())
    observation = {'x': np.zeros([2, 3]), 'y': (np.float32(5),)}
    actor.observe_first(dm_env.restart(observation))
    action = actor.select_action(observation)
    actor.observe(action, dm_env.truncation(2.5, observation, discount=0.5))
    actor.update(wait=True)
    assert action['move'] == 3
    assert np.shape(action['move']) == ()
    assert action['force'].tolist() == [1, 2]
    first, selected, (observed, timestep), wait = seen
    for nest in (first.observation, selected, timestep.observation):
      assert nest['x'].shape == (1, 2, 3)
      assert nest['y'][0].tolist() == [5]
    assert observed['move'].tolist() == [3]
    assert observed['force'].tolist() == [[1, 2]]
    assert timestep.reward.tolist() == [2.5]
    assert timestep.discount.tolist() == [0.5]
    assert timestep.step_type.tolist() == [dm_env.StepType.LAST]
    assert wait


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

  def test_slots_of_different_lengths(self):
    acting = [acme_actor.AcmeActor(seed=i) for i in range(3)]
    environments = batch.EnvironmentBatch(
      [wrappers.StepLimit(catch.Catch(seed=n), n) for n in (1, 2, 9)]
    )
    loop = environment_loop.EnvironmentLoop(
      environments, actors.Batched(acting)
    )
    episodes = []
    for _ in range(60):
      episodes += loop.step()[1]
    # Episodes of 2, 3 and 10 timesteps.
    assert [len(a.returns) for a in acting] == [30, 20, 6]
    for slot, actor in enumerate(acting):
      assert [
        e.episode_return for e in episodes if e.slot == slot
      ] == actor.returns

  def test_each_environment_gets_its_own_actors_action(self):
    acting = [acme_actor.AcmeActor(seed=i) for i in range(3)]
    actor = actors.Batched(acting)
    environments = make_catch_batch(3)
    timestep = environments.reset()
    actor.observe_first(timestep)
    for _ in range(9):
      action = actor.select_action(timestep.observation)
      assert action.tolist() == [a.actions[-1] for a in acting]
      timestep = environments.step(action)
      actor.observe(action, timestep)

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

  def test_nested_actions_are_stacked(self):
    class Nested(acme_actor.AcmeActor):
      def select_action(self, observation):
        move = super().select_action(observation)
        return {'move': move, 'force': np.full(2, move, np.float32)}

    acting = [Nested(seed=i) for i in range(3)]
    actor = actors.Batched(acting)
    timestep = make_catch_batch(3).reset()
    actor.observe_first(timestep)
    action = actor.select_action(timestep.observation)
    moves = [a.actions[-1] for a in acting]
    assert action['move'].tolist() == moves
    assert action['force'].tolist() == [[m, m] for m in moves]

  def test_needs_an_actor(self):
    with pytest.raises(ValueError, match='one actor per slot, got none'):
      actors.Batched([])

  def test_there_and_back(self):
    # Unbatching and batching again changes nothing.
    def run(wrap):
      environments = make_catch_batch(1)
      policy = counting_policy.CountingPolicy()
      adder = recording_adder.RecordingAdder()
      actor = actors.PolicyActor(
        policy, environments.observation_spec(), [5], adder=adder
      )
      loop = environment_loop.EnvironmentLoop(environments, wrap(actor))
      return loop.run_episodes(5)

    assert run(lambda actor: actors.Batched([actors.Unbatched(actor)])) == run(
      lambda actor: actor
    )
