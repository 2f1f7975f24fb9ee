"""Tests of relabeled transitions against episodes followed by hand."""

import collections
import pickle

import dm_env
import numpy as np
import pytest

from repertory.components import adders, specs
from repertory.components.adders import hindsight
from support.replay import recording_writer

_GOAL = specs.Array((1,), np.float32)
_SPEC = specs.EnvironmentSpec(
  observations={
    'observation': _GOAL, 'achieved_goal': _GOAL, 'desired_goal': _GOAL,
  },
  actions=specs.DiscreteArray(5, np.int32),
  rewards=specs.Array((), np.float32),
  discounts=specs.BoundedArray((), np.float32, 0, 1),
)  # fmt: skip
_LENGTHS = 6, 4  # Of the episodes of two slots, which walk from 0 upwards.
_WANTED = 100.0


def _outcomes(achieved, desired):
  near = (achieved == desired)[:, 0]
  return np.where(near, 0, -1), near


def _make_outcomes():
  return hindsight.GoalOutcomes(_outcomes)


def _write_all(adder):
  while adder._copies:
    adder._write_copies(100)


def _make(**settings):
  items = adders.HindsightTransitions(
    1,
    0.9,
    **{'num_goals': 3, 'make_outcomes': _make_outcomes, **settings},
  )
  writer = recording_writer.RecordingWriter(items.signature(_SPEC))
  return items.make_adder(writer, len(_LENGTHS)), writer


def _timestep(times):
  """Returns the time step of walks that are at `times`, −1 for a reset."""
  places = np.array([[t] for t in times], np.float32)
  ends = np.equal(times, _LENGTHS)
  first = np.equal(times, 0)
  return dm_env.TimeStep(
    np.where(ends, 2, np.where(first, 0, 1)).astype(np.int32),
    np.where(first, 0, -1).astype(np.float32),
    np.ones(2, np.float32),
    {
      'observation': places,
      'achieved_goal': places,
      'desired_goal': np.full_like(places, _WANTED),
    },
  )


def _walk(adder, num_steps=30):
  """Walks with both slots; returns the number of ended episodes of each."""
  times, ended = [0, 0], collections.Counter()
  adder.add_first(_timestep(times))
  for _ in range(num_steps):
    times = [0 if t == length else t + 1 for t, length in zip(times, _LENGTHS)]
    adder.add(np.array(times, np.int32) % 5, _timestep(times))
    ended.update(i for i in range(2) if times[i] == _LENGTHS[i])
  return ended


def _items(writer):
  """Returns (place, goal, reward, discount, next place, next goal)."""
  found = []
  for item in writer.items:
    before, after = item.observation, item.next_observation
    values = (
      before['observation'], before['desired_goal'], item.reward,
      item.discount, after['observation'], after['desired_goal'],
    )  # fmt: skip
    found.append(tuple(float(np.asarray(v).ravel()[0]) for v in values))
  return found


@pytest.mark.parametrize('strategy', ['future', 'final', 'episode'])
def test_copies_have_goals_of_their_episode(strategy):
  adder, writer = _make(strategy=strategy)
  ended = _walk(adder)
  _write_all(adder)
  items = _items(writer)
  originals = [item for item in items if item[1] == _WANTED]
  copies = [item for item in items if item[1] != _WANTED]
  assert len(originals) == sum(
    30 - number for number in ended.values()
  )  # Each end is followed by a reset.
  assert len(copies) == 3 * sum(
    ended[i] * length for i, length in enumerate(_LENGTHS)
  )
  seen = collections.defaultdict(set)
  for place, goal, reward, discount, next_place, next_goal in copies:
    assert (next_place, next_goal) == (place + 1, goal)
    assert (reward, discount) == ((0, 0) if goal == next_place else (-1, 1))
    seen[next_place].add(goal)
  possible = {
    'future': lambda place, length: place <= length,
    'final': lambda place, length: False,
    'episode': lambda place, length: True,
  }[strategy]
  for place, goals in seen.items():
    allowed = set(map(float, _LENGTHS))
    if strategy != 'final':
      start = place if strategy == 'future' else 1
      allowed = {float(g) for g in range(int(start), 7) if possible(start, 7)}
    assert goals <= allowed
  # Five episodes of six steps, with three goals each, miss none.
  assert seen[1.0] == ({4.0, 6.0} if strategy == 'final' else set(
    map(float, range(1, 7))
  ))  # fmt: skip


def test_copies_are_written_in_small_numbers():
  adder, writer = _make(num_goals=2)
  before, most = 0, 0
  times = [0, 0]
  adder.add_first(_timestep(times))
  for _ in range(40):
    times = [0 if t == length else t + 1 for t, length in zip(times, _LENGTHS)]
    adder.add(np.array(times, np.int32) % 5, _timestep(times))
    most = max(most, writer.num_items - before)
    before = writer.num_items
  assert most == 2 * (1 + 2 * 2)


def test_open_episodes_are_dropped_by_a_reset():
  adder, writer = _make()
  adder.add_first(_timestep([0, 0]))
  adder.add(np.array([1, 1], np.int32), _timestep([1, 1]))
  adder.reset()
  adder.add_first(_timestep([0, 0]))
  for t in range(1, 5):
    adder.add(np.array([t, t], np.int32), _timestep([t, t]))
  _write_all(adder)
  copies = [item for item in _items(writer) if item[1] != _WANTED]
  assert len(copies) == 3 * 4


def test_copies_that_are_left_are_dropped_at_the_end():
  adder, writer = _make()
  adder.add_first(_timestep([0, 0]))
  for t in range(1, 5):
    adder.add(np.array([t, t], np.int32), _timestep([t, t]))
  written = writer.num_items
  adder.close()
  assert writer.num_items == written < 8 + 3 * 4 + 1


def test_data_sets_have_no_copies():
  items = adders.HindsightTransitions(1, 0.9, 2.0, num_goals=1)
  assert items.of_data == adders.Transitions(1, 0.9, 2.0)


def test_state_is_saved():
  found = []
  for is_restored in (False, True):
    adder, writer = _make()
    adder.add_first(_timestep([0, 0]))
    adder.add(np.array([1, 1], np.int32), _timestep([1, 1]))
    if is_restored:
      state = pickle.loads(pickle.dumps(adder.save()))
      adder, writer = _make()
      adder.restore(state)
    for t in (2, 3, 4):
      adder.add(np.array([t, t], np.int32), _timestep([t, t]))
    _write_all(adder)
    found.append(_items(writer)[-12:])
  assert found[0] == found[1]


@pytest.mark.parametrize(
  ('change', 'problem'),
  [
    ({'desired_goal': specs.Array((2,), np.float32)}, 'equal shapes'),
    ({'achieved_goal': None}, "not a dictionary with 'achieved_goal' and"),
  ],
)
def test_observations_need_goals(change, problem):
  observations = {**_SPEC.observations, **change}
  observations = {k: v for k, v in observations.items() if v is not None}
  items = adders.HindsightTransitions(1, 0.9, num_goals=1)
  with pytest.raises(ValueError, match=problem):
    items.signature(_SPEC._replace(observations=observations))
