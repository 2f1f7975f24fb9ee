"""Tests of `components/actors/environment_loop.py`."""

import itertools

import dm_env
import numpy as np
import pytest
from acme import specs

from repertory.components import core
from repertory.components.actors import environment_loop
from repertory.environments.batches import batch

Episode = environment_loop.Episode


class RewardScript(dm_env.Environment):
  """Plays episodes of given rewards, repeatedly.

  The observation is the step of the episode; each step stores the action in an
  attribute.
  """

  def __init__(self, *episodes):
    self._episodes = itertools.cycle(episodes)
    self._rewards = None
    self._step = 0

  def reset(self):
    self._rewards = next(self._episodes)
    self._step = 0
    return dm_env.restart(np.float32(0))

  def step(self, action):
    if self._rewards is None:
      return self.reset()
    reward = np.float32(self._rewards[self._step])
    self._step += 1
    observation = np.float32(self._step)
    if self._step < len(self._rewards):
      return dm_env.transition(reward, observation, np.float32(1))
    self._rewards = None
    return dm_env.termination(reward, observation)

  def observation_spec(self):
    return specs.Array((), np.float32)

  def action_spec(self):
    return specs.DiscreteArray(100, np.int32)

  def reward_spec(self):
    return specs.Array((), np.float32)

  def discount_spec(self):
    return specs.BoundedArray((), np.float32, 0, 1)


class RecordingActor(core.Actor):
  """Records all calls; the k-th action is k in every slot."""

  def __init__(self):
    self.calls = []
    self.num_actions = 0

  def observe_first(self, timestep):
    self.calls.append(('observe_first', timestep))

  def select_action(self, observation):
    self.calls.append(('select_action', observation))
    self.num_actions += 1
    return np.full(len(observation), self.num_actions % 100, np.int32)

  def observe(self, action, next_timestep):
    self.calls.append(('observe', action, next_timestep))

  def update(self, wait=False):
    self.calls.append(('update', wait))

  def names(self):
    return [call[0] for call in self.calls]


def make(*scripts):
  """Each script is the list of one slot's episodes."""
  environments = batch.EnvironmentBatch([RewardScript(*s) for s in scripts])
  actor = RecordingActor()
  loop = environment_loop.EnvironmentLoop(environments, actor)
  return loop, actor


# The slots' episodes have 1, 2 and 3 steps.
SCRIPTS = ([[5]], [[10, 20], [-10, -20]], [[100, 200, 300]])


class TestStep:
  def test_counts_and_episodes_step_by_step(self):
    loop, _ = make(*SCRIPTS)
    a = Episode(slot=0, episode_return=5, length=1)
    b = Episode(slot=1, episode_return=10 + 20, length=2)
    b_2 = Episode(slot=1, episode_return=-10 - 20, length=2)
    c = Episode(slot=2, episode_return=100 + 200 + 300, length=3)
    expected = [
      # Slots: L means LAST, F FIRST, which is no environment step.
      (3, [a]),  # L . .
      (2, [b]),  # F L .
      (2, [a, c]),  # L F L
      (1, []),  # F . F
      (3, [a, b_2]),  # L L .
      (1, []),  # F F .
      (3, [a, c]),  # L . L
      (1, [b]),  # F L F
      (2, [a]),  # L F .
    ]
    for step in expected:
      assert loop.step() == step

  def test_calls_come_in_turn_with_matching_arguments(self):
    loop, actor = make(*SCRIPTS)
    loop.run(num_steps=1)
    loop.step()
    assert actor.names() == ['observe_first'] + 2 * [
      'select_action',
      'observe',
      'update',
    ]
    first, select, observe, _, select_2, observe_2, update = actor.calls
    assert first[1].step_type.tolist() == [0, 0, 0]
    assert select[1].tolist() == [0, 0, 0]
    assert observe[1].tolist() == [1, 1, 1]
    assert observe[2].step_type.tolist() == [2, 1, 1]
    assert observe[2].reward.tolist() == [5, 10, 100]
    # The actor acts on its latest observation.
    assert select_2[1] is observe[2].observation
    assert observe_2[1].tolist() == [2, 2, 2]
    assert update == ('update', False)

  def test_reset_forgets_the_open_episodes(self):
    loop, actor = make(*SCRIPTS)
    loop.step()
    timestep = loop.reset()
    assert timestep.step_type.tolist() == [0, 0, 0]
    episodes = loop.step()[1] + loop.step()[1] + loop.step()[1]
    # Slot 2 started again: all three of its rewards, not those of four steps.
    expected = [(0, 5, 1), (1, -30, 2), (0, 5, 1), (2, 600, 3)]
    assert [(e.slot, e.episode_return, e.length) for e in episodes] == expected
    assert actor.names().count('observe_first') == 2

  def test_long_returns_are_summed_in_double_precision(self):
    # In float32 the sum stays at 2^24 from there on.
    loop, _ = make([[2.0**24] + [1.0] * 10])
    loop.run(num_steps=10)
    ((episode,),) = [loop.step()[1]]
    assert episode.episode_return == 2**24 + 10


class TestRun:
  @pytest.mark.parametrize(
    ('limits', 'calls'),
    [
      # Steps add up to 3, 5, 7, 8, 11, 12, 15, 16, 18 and episodes to
      # 1, 2, 4, 4, 6, 6, 8, 9, 10.
      ({'num_steps': 4}, 2),
      ({'num_steps': 8}, 4),
      ({'num_episodes': 3}, 3),
      ({'num_steps': 8, 'num_episodes': 5}, 4),
      ({'num_steps': 100, 'num_episodes': 5}, 5),
    ],
  )
  def test_limits(self, limits, calls):
    loop, actor = make(*SCRIPTS)
    loop.run(**limits)
    assert actor.num_actions == calls


class TestRunEpisodes:
  @pytest.mark.parametrize(
    ('num_episodes', 'quotas'),
    [
      (1, [1, 0, 0]),
      (7, [3, 2, 2]),
    ],
  )
  def test_slots_contribute_equally(self, num_episodes, quotas):
    loop, _ = make([[1]], [[0, 0]], [[-1] * 40])
    episodes = loop.run_episodes(num_episodes)
    assert len(episodes) == num_episodes
    found = np.bincount([e.slot for e in episodes], minlength=3)
    assert found.tolist() == quotas

  def test_are_the_first_of_each_slot(self):
    loop, _ = make([[1], [2], [3], [4], [5]], [[10] * 9])
    episodes = loop.run_episodes(4)
    assert [e.episode_return for e in episodes] == [1, 2, 90, 90]

  def test_starts_new_episodes(self):
    loop, actor = make([[1, 2, 4], [8, 16, 32], [64, 128, 256]])
    loop.step()
    episodes = loop.run_episodes(1)
    # The first episode, open already, is left out.
    assert episodes == [Episode(0, 8 + 16 + 32, 3)]
    assert loop.run_episodes(1) == [Episode(0, 64 + 128 + 256, 3)]
    assert actor.names().count('observe_first') == 3

  def test_stops_early(self):
    asked = []

    def should_stop():
      asked.append(True)
      return len(asked) > 4

    loop, actor = make([[1, 1]])
    episodes = loop.run_episodes(100, should_stop)
    # Steps 1 and 2 are an episode, 3 is the next one's start, then 4.
    assert episodes == [Episode(0, 2, 2)]
    assert actor.num_actions == 4
