"""Compares items cut inside a program with those of adders."""

import numpy as np
import pytest
import tensorflow as tf

from repertory.components import adders, anakin, replay, types
from repertory.components.runtime import random_streams
from support.replay import scripted_rollouts, sequence_twin

_G = 0.9


def _make_items(n_step, **settings):
  return adders.Transitions(
    n_step, _G, extras_spec=sequence_twin.EXTRAS_SPEC, **settings
  )


def _make_sequences(length, period, burn_in, across_episodes):
  return sequence_twin.make_sequences(
    length=length,
    period=period,
    burn_in=burn_in,
    across_episodes=across_episodes,
  )


def _make_player(items, histories, seed=0, **settings):
  experience = scripted_rollouts.make_experience(items, **settings)
  kind = anakin.SequenceTransport
  if isinstance(items, adders.Transitions):
    kind = anakin.TransitionTransport
  return scripted_rollouts.Player(
    kind(experience, len(histories), seed), scripted_rollouts.Script(histories)
  )


def _record(items, histories):
  """Returns the adder's items with their anchors, and counts per step."""
  made, counts = scripted_rollouts.record(items, histories)
  anchored = []
  for item in made:
    observation = item.observation
    if isinstance(items, adders.Sequences):
      observation = {k: v[items.burn_in] for k, v in observation.items()}
    anchor = scripted_rollouts.anchor_of(observation, histories)
    anchored.append((anchor, item))
  return anchored, counts


# In practice, windows after a burn-in overlap. Rare: one step; a burn-in longer
# than the window, and windows without overlap.
@pytest.mark.parametrize(
  'items',
  [
    _make_items(1),
    _make_items(5, max_abs_reward=2.0),
    _make_sequences(7, 2, 3, False),
    _make_sequences(7, 2, 3, True),
    *(
      pytest.param(_make_sequences(*sizes, across), marks=pytest.mark.chaos)
      for sizes in ((2, None, 0), (7, None, 4))
      for across in (False, True)
    ),
  ],
)
def test_all_items_equal_those_of_the_adder(items):
  """Rows end at different times, one at every other step, one never."""
  histories = sequence_twin.make_histories(
    32, [[1, 2, 3, 4, 7], [1], [9, 12], [100]]
  )
  anchored, counts = _record(items, histories)
  player = _make_player(items, histories)
  before = -1
  for count in counts:
    player.step()
    held = dict(anchored[:count])
    assert len(held) == count  # Anchors are unique.
    assert player.status().inserts == count
    if count > before + 5 or player.time == len(counts):
      assert scripted_rollouts.check_held(player, held, 1000) == 0
      before = count
  assert counts[-1] >= 20


# Of transitions also episodes of one step, where every other record begins
# none; and a small table.
@pytest.mark.parametrize(
  ('items', 'max_size', 'lengths'),
  [
    (_make_items(3), 17, [[1], [1]]),
    (_make_items(3), 7, [[3, 4], [6], [2]]),
    (_make_sequences(6, 2, 2, False), 12, [[1, 2, 3, 4, 7], [5], [100]]),
    (_make_sequences(6, 2, 2, True), 12, [[1, 2, 3, 4, 7], [100]]),
    pytest.param(
      _make_sequences(6, 2, 2, False), 2, [[6], [11]], marks=pytest.mark.chaos
    ),
    pytest.param(
      _make_sequences(6, 2, 2, True), 8, [[1], [1]], marks=pytest.mark.chaos
    ),
  ],
)
def test_the_oldest_are_replaced_when_it_is_full(items, max_size, lengths):
  histories = sequence_twin.make_histories(80, lengths, seed=1)
  anchored, counts = _record(items, histories)
  player = _make_player(items, histories, max_size=max_size)
  num_dropped = [0]
  for count in counts:
    player.step()
    held = dict(anchored[:count])
    num_dropped.append(scripted_rollouts.check_held(player, held, max_size))
    assert num_dropped[-1] >= num_dropped[-2]
  # The ring wrapped around.
  assert player.time > 2 * player.transport._num_records
  assert num_dropped[-1] >= len(anchored) - max_size > max_size


def test_items_with_replaced_anchors_are_dropped():
  """Short episodes overwrite the table before a long item is complete."""
  items = _make_sequences(9, 4, 0, False)
  histories = sequence_twin.make_histories(80, [[30], [1], [1], [1]])
  anchored, counts = _record(items, histories)
  player = _make_player(items, histories, max_size=4)
  for count in counts:
    player.step()
    scripted_rollouts.check_held(player, dict(anchored[:count]), 4)
    oldest = int(player.transport._oldest.numpy())
    assert all(time >= oldest for _, time in player.drawable())


def test_new_items_get_the_largest_priority():
  items = _make_items(3)
  histories = sequence_twin.make_histories(30, [[4, 6], [5]])
  player = _make_player(
    items, histories, priority_exponent=0.5, min_priority=0.25
  )
  largest = [1.0, 4.0, 16.0, 2.25]
  expected = []
  for t in range(len(histories[0]) - 1):
    before = player.status().inserts
    player.step(largest[t % 4])
    # √1, √4, √16 and √2.25.
    new = player.status().inserts - before
    expected += [[1.0, 2.0, 4.0, 1.5][t % 4]] * new
  weights = player.weights()
  assert sorted(weights[weights > 0]) == sorted(expected)
  assert len(set(expected)) == 4


def test_priorities_that_are_set():
  items = _make_items(1)
  histories = sequence_twin.make_histories(20, [[4, 6], [5]])
  player = _make_player(
    items, histories, priority_exponent=0.5, min_priority=0.25
  )
  for _ in range(12):
    player.step()
  transport = player.transport
  keys = np.flatnonzero(player.weights())[[0, 3, 5, 3]]
  sample = types.Sample((), tf.constant(keys, tf.uint64), (), ())
  expected = player.weights()
  # The minimum priority is 0.25. An item may be in a batch twice.
  transport.set_priorities(
    sample, tf.constant([9.0, 0.0, 2.25, 0.0]), tf.constant(True)
  )
  expected[keys] = [3.0, 0.5, 1.5, 0.5]
  np.testing.assert_array_equal(player.weights(), expected)
  np.testing.assert_array_equal(transport._tree.total().numpy(), expected.sum())
  transport.set_priorities(
    sample, tf.constant([np.nan, 4.0, 4.0, 4.0]), tf.constant(False)
  )
  np.testing.assert_array_equal(player.weights(), expected)


def _find(weights, u):
  place = int(np.searchsorted(np.cumsum(weights), u * weights.sum(), 'right'))
  assert weights[place] > 0
  return place


@pytest.mark.parametrize('priority_exponent', [None, 0.5])
def test_draws_follow_the_weights(priority_exponent):
  items = _make_items(3)
  histories = sequence_twin.make_histories(30, [[4, 6], [5], [1, 2]])
  player = _make_player(
    items, histories, seed=5, max_size=30, batch_size=16,
    priority_exponent=priority_exponent,
    min_priority=None if priority_exponent is None else 0.01,
  )  # fmt: skip
  counters = random_streams.initial_counters(5, range(16))
  for t in range(28):
    # Weights of 1 and 2, whose sums are exact.
    player.step([1.0, 4.0][t % 2])
  sampled = set()
  for _ in range(3):
    sample = player.transport.sample((), tf.constant(0))
    high, low, counters = random_streams.next_uniforms(counters)
    uniforms = high.numpy().astype(np.float64) + low.numpy() / 2.0**24
    weights = player.weights()
    keys = sample.keys.numpy()
    assert keys.tolist() == [_find(weights, u) for u in uniforms]
    expected = weights[keys] / weights.sum()
    np.testing.assert_array_equal(sample.probabilities.numpy(), expected)
    assert set(sample.table_sizes.numpy()) == {np.count_nonzero(weights)}
    drawable = {
      tuple(item.observation['place']): item
      for item in player.drawable().values()
    }
    for b in range(16):
      item = sample.data.reward.numpy()[b]
      place = tuple(sample.data.observation['place'].numpy()[b])
      assert item == drawable[place].reward
    sampled.update(keys.tolist())
  assert len(sampled) > 10


def test_updates_are_due_as_elsewhere():
  samples_per_insert, min_size, batch_size = 1.7, 5, 3
  items = _make_items(5)
  histories = sequence_twin.make_histories(40, [[4, 6], [9], [1, 2]])
  player = _make_player(
    items, histories, max_size=60, batch_size=batch_size,
    samples_per_insert=samples_per_insert, min_size=min_size,
  )  # fmt: skip
  replay_ratio = replay.ReplayRatio(player.transport._table, batch_size)
  steps = 0
  most = 0
  while player.time < 39:
    player.step()
    due = 0
    while player.transport.is_due((), tf.constant(due)):
      inserts = player.status().inserts
      assert replay_ratio.updates_due(steps, inserts)
      player.transport.sample((), tf.constant(due))
      steps, due = steps + 1, due + 1
    assert not replay_ratio.updates_due(steps, player.status().inserts)
    assert due < player.transport.max_updates
    most = max(most, due)
  status = player.status()
  assert status.samples == steps * batch_size
  expected = (status.inserts - min_size) * samples_per_insert // batch_size
  assert steps == expected
  assert most > 0
