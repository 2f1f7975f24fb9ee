"""Random histories: what the sequence adders promise, and a slow twin."""

import collections
import itertools
from typing import Any, NamedTuple

import numpy as np
import pytest

import sequence_twin
import transition_twin
from repertory.components import adders

# Episodes to choose from, in steps: mixed, short, hardly any end, long.
_LENGTHS = [[1, 2, 3, 4, 5, 6, 13], [1, 2], [1], [40], [5, 9, 17]]


class _Case(NamedTuple):
  """The adder's settings and what it is run on."""

  settings: dict[str, Any]
  histories: list
  rewards: list


def _draw(random, max_moments=50, **settings):
  """Returns a random case; `settings` are given."""
  length = int(random.integers(2, 10))
  burn_in = int(random.integers(0, length - 1)) if random.random() < 0.6 else 0
  window = length - 1 - burn_in
  period = int(random.integers(1, window + 1))
  drawn = {
    'length': length,
    'burn_in': burn_in,
    'period': None if random.random() < 0.3 else period,
  }
  num_moments = int(random.integers(1, max_moments))
  slots = range(1, int(random.integers(1, 4)) + 1)
  rewards = [_draw_rewards(random, num_moments) for _ in slots]
  histories = [
    sequence_twin.make_history(
      slot,
      rows,
      num_moments,
      [random.choice([0.0, 0.5, 1.0], len(row)) for row in rows],
    )
    for slot, rows in zip(slots, rewards)
  ]
  return _Case(drawn | settings, histories, rewards)


def _draw_rewards(random, num_moments):
  """Returns rewards whose sums are exact, of episodes that are enough."""
  lengths = _LENGTHS[random.integers(len(_LENGTHS))]
  rows = []
  while sum(len(row) + 1 for row in rows) < num_moments:
    rows.append(random.integers(1, 1000, random.choice(lengths)).tolist())
  return rows


def _run(case):
  """Returns the items of each slot."""
  sequences = sequence_twin.make_sequences(**case.settings)
  return _by_slot(sequence_twin.record(sequences, case.histories), case)


def _by_slot(items, case):
  rows = [[] for _ in case.histories]
  for item in items:
    rows[sequence_twin.slot_of(item) - 1].append(item)
  return rows


def _expect(case):
  return [
    sequence_twin.make_items(history, **case.settings)
    for history in case.histories
  ]


def _read_windows(items, burn_in):
  """Returns the rewards in loss windows by step, one for each time there."""
  rewards = collections.defaultdict(list)
  for item in items:
    for p in range(burn_in, len(item.mask)):
      if item.mask[p]:
        where = tuple(item.observation['place'][p].tolist())
        # They belong together.
        assert item.action['move'][p] == transition_twin.act(*where)['move']
        rewards[where].append(float(item.reward[p]))
  return rewards


def _num_windows(t, num_items, period, window):
  """Returns in how many windows of the items k = 0, 1, ... step t is."""
  return sum(k * period <= t < k * period + window for k in range(num_items))


def _num_full_windows(num_steps, period, window):
  """Returns the largest n for which (n − 1) · period + W steps are enough."""
  return max(0, (num_steps - window) // period + 1)


def _num_covered(num_items, period, window):
  """Returns how many steps the windows of so many items cover."""
  return (num_items - 1) * period + window if num_items else 0


@pytest.mark.parametrize('across_episodes', [False, True])
@pytest.mark.parametrize('seed', range(150))
def test_items_are_the_twins(seed, across_episodes):
  case = _draw(
    np.random.default_rng([1, seed]), across_episodes=across_episodes
  )
  for found, expected in zip(_run(case), _expect(case), strict=True):
    sequence_twin.assert_equal(found, expected)


@pytest.mark.parametrize('seed', range(150))
def test_steps_are_in_as_many_windows_as_told(seed):
  case = _draw(np.random.default_rng([2, seed]))
  burn_in = case.settings['burn_in']
  window = case.settings['length'] - 1 - burn_in
  period = case.settings['period'] or window
  for slot, items in enumerate(_run(case)):
    rewards = _read_windows(items, burn_in)
    num_expected = 0
    for episode, (moments, ended) in enumerate(
      sequence_twin.split(case.histories[slot])
    ):
      num_steps = len(moments) - 1
      num_items = _num_full_windows(num_steps, period, window)
      # One more if they leave steps over.
      if ended and _num_covered(num_items, period, window) < num_steps:
        num_items += 1
      for t in range(num_steps):
        found = rewards[slot + 1, episode, t]
        num_windows = _num_windows(t, num_items, period, window)
        num_expected += num_windows
        assert found == [case.rewards[slot][episode][t]] * num_windows
        assert num_windows >= 1 or not ended
        assert num_windows == 1 or not ended or period < window
    assert sum(map(len, rewards.values())) == num_expected


@pytest.mark.parametrize('seed', range(75))
def test_no_reward_of_an_ended_episode_is_dropped(seed):
  """Nor counted twice, if the period is the whole window."""
  case = _draw(np.random.default_rng([3, seed]), period=None)
  for slot, items in enumerate(_run(case)):
    rewards = _read_windows(items, case.settings['burn_in'])
    episodes = sequence_twin.split(case.histories[slot])
    ended = {number for number, (_, ended) in enumerate(episodes) if ended}
    found = sum(
      sum(row) for (_, number, _), row in rewards.items() if number in ended
    )
    assert found == sum(sum(case.rewards[slot][number]) for number in ended)


@pytest.mark.parametrize('seed', range(75))
def test_across_episodes_no_step_before_the_last_item_is_missed(seed):
  case = _draw(np.random.default_rng([4, seed]), across_episodes=True)
  burn_in = case.settings['burn_in']
  window = case.settings['length'] - 1 - burn_in
  period = case.settings['period'] or window
  for slot, items in enumerate(_run(case)):
    history = case.histories[slot]
    num_items = _num_full_windows(len(history) - 1, period, window)
    assert len(items) == num_items
    rewards = _read_windows(items, burn_in)
    total = 0
    for time, moment in enumerate(history[:-1]):
      num_windows = _num_windows(time, num_items, period, window)
      if moment.mask:
        where = tuple(moment.observation['place'].tolist())
        assert rewards[where] == [float(moment.reward)] * num_windows
        total += float(moment.reward) * num_windows
      if time < _num_covered(num_items, period, window):
        assert num_windows >= 1
        assert num_windows == 1 or period < window
    assert sum(map(sum, rewards.values())) == total


@pytest.mark.parametrize('seed', range(40))
def test_items_overlap_by_more_than_the_burn_in(seed):
  """And share exactly so many observations if windows only touch."""
  random = np.random.default_rng([5, seed])
  case = _draw(random, across_episodes=True)
  burn_in = case.settings['burn_in']
  window = case.settings['length'] - 1 - burn_in
  period = case.settings['period'] or window
  num_shared = burn_in + 1 + window - period
  for items in _run(case):
    for before, after in itertools.pairwise(items):
      np.testing.assert_array_equal(
        before.observation['place'][-num_shared:],
        after.observation['place'][:num_shared],
      )
      np.testing.assert_array_equal(
        before.first[-num_shared:], after.first[:num_shared]
      )


@pytest.mark.parametrize('seed', range(40))
def test_episode_adder_gives_whole_episodes(seed):
  random = np.random.default_rng([6, seed])
  case = _draw(random)
  longest = max(
    len(moments) - 1
    for history in case.histories
    for moments, _ in sequence_twin.split(history)
  )
  # As if each went on: then it would be too long.
  max_length = longest + 1 + int(random.integers(3))
  writer = sequence_twin.make_writer(max_length + 1)
  adder = adders.EpisodeAdder(
    writer, len(case.histories), max_length=max_length
  )
  sequence_twin.play(writer, adder, case.histories)
  for history, items in zip(case.histories, _by_slot(writer.items, case)):
    expected = sequence_twin.make_items(history, max_length + 1)
    sequence_twin.assert_equal(items, expected)
    episodes = sequence_twin.split(history)
    assert len(items) == sum(ended for _, ended in episodes)


@pytest.mark.parametrize('across_episodes', [False, True])
def test_no_history_makes_more_items_than_told(across_episodes):
  tight = 0
  for seed in range(60):
    case = _draw(
      np.random.default_rng([8, seed]), across_episodes=across_episodes
    )
    sequences = adders.Sequences(**case.settings)
    for history, items in zip(case.histories, _expect(case)):
      num_steps = sum(
        len(moments) - 1 for moments, _ in sequence_twin.split(history)
      )
      most = sequences.max_items(num_steps)
      assert len(items) <= most
      tight += bool(items) and len(items) == most
  assert tight
