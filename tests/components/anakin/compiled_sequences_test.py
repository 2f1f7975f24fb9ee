"""Compares sequences cut inside a program with those of adders."""

import numpy as np
import pytest
import tensorflow as tf

from repertory.components.anakin import sequences
from support.replay import scripted_rollouts, sequence_twin


def _make_histories(num_moments, lengths, seed=0):
  """Returns histories whose episodes terminate, are truncated, or fade."""
  random = np.random.default_rng(seed)
  histories = []
  for slot, choice in enumerate(lengths, 1):
    rewards, discounts = [], []
    while sum(len(row) + 1 for row in rewards) < num_moments:
      length = int(random.choice(choice))
      rewards.append(random.integers(1, 1000, length).tolist())
      discounts.append(random.choice([0.0, 0.5, 1.0], length))
    histories.append(
      sequence_twin.make_history(slot, rewards, num_moments, discounts)
    )
  return histories


def _make_player(items, histories, **settings):
  experience = scripted_rollouts.make_experience(items, **settings)
  transport = sequences.SequenceTransport(experience, len(histories), 0)
  return scripted_rollouts.Player(
    transport, scripted_rollouts.Script(histories)
  )


def _record(items, histories):
  """Returns the adder's items with their anchors, and counts per step."""
  made, counts = scripted_rollouts.record(items, histories)
  anchored = []
  for item in made:
    observation = {k: v[items.burn_in] for k, v in item.observation.items()}
    anchor = scripted_rollouts.anchor_of(observation, histories)
    anchored.append((anchor, item))
  return anchored, counts


# Length, period and burn-in: one step; overlaps; burn-in as long as and longer
# than the window; windows without overlap after a burn-in. In practice, windows
# after a burn-in overlap.
_RARE = [
  (2, None, 0),
  (6, None, 0),
  (6, 2, 0),
  (4, 1, 1),
  (7, None, 4),
]


@pytest.mark.parametrize('across_episodes', [False, True])
@pytest.mark.parametrize(
  ('length', 'period', 'burn_in'),
  [
    (7, 2, 3),
    *[pytest.param(*case, marks=pytest.mark.chaos) for case in _RARE],
  ],
)
def test_all_items_equal_those_of_the_adder(
  length, period, burn_in, across_episodes
):
  """Rows end at different times, one at every other step, one never."""
  items = sequence_twin.make_sequences(
    length=length,
    period=period,
    burn_in=burn_in,
    across_episodes=across_episodes,
  )
  histories = _make_histories(32, [[1, 2, 3, 4, 7], [1], [9, 12], [100]])
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


@pytest.mark.parametrize(
  ('max_size', 'lengths', 'across_episodes'),
  [
    (12, [[1, 2, 3, 4, 7], [5], [100]], False),
    pytest.param(8, [[9, 17]], False, marks=pytest.mark.chaos),
    pytest.param(2, [[6], [11]], False, marks=pytest.mark.chaos),
    (12, [[1, 2, 3, 4, 7], [100]], True),
    pytest.param(8, [[1], [1]], True, marks=pytest.mark.chaos),
  ],
)
@pytest.mark.parametrize(
  ('length', 'period', 'burn_in'),
  [pytest.param(4, None, 0, marks=pytest.mark.chaos), (6, 2, 2)],
)
def test_the_oldest_are_replaced_when_it_is_full(
  length, period, burn_in, max_size, lengths, across_episodes
):
  items = sequence_twin.make_sequences(
    length=length,
    period=period,
    burn_in=burn_in,
    across_episodes=across_episodes,
  )
  histories = _make_histories(80, lengths, seed=1)
  anchored, counts = _record(items, histories)
  player = _make_player(items, histories, max_size=max_size)
  num_dropped = [0]
  for count in counts:
    player.step()
    held = dict(anchored[:count])
    num_dropped.append(scripted_rollouts.check_held(player, held, max_size))
    assert num_dropped[-1] >= num_dropped[-2]
  assert (
    player.time > 2 * player.transport._num_moments
  )  # The ring wrapped around.
  assert num_dropped[-1] >= len(anchored) - max_size > max_size


def test_items_with_replaced_anchors_are_dropped():
  """Short episodes overwrite the table before a long item is complete."""
  items = sequence_twin.make_sequences(
    length=9, period=4, burn_in=0, across_episodes=False
  )
  histories = _make_histories(80, [[30], [1], [1], [1]])
  anchored, counts = _record(items, histories)
  player = _make_player(items, histories, max_size=4)
  for count in counts:
    player.step()
    scripted_rollouts.check_held(player, dict(anchored[:count]), 4)
    oldest = int(player.transport._oldest.numpy())
    assert all(time >= oldest for _, time in player.drawable())


def test_a_table_of_long_episodes_gets_full():
  """No item is removed for lack of step records."""
  histories = _make_histories(75, [[100], [100]])
  items = sequence_twin.make_sequences(length=6, period=2, burn_in=2)
  player = _make_player(items, histories, max_size=12)
  sizes = []
  for _ in range(74):
    player.step()
    sizes.append(player.status().size)
  assert sizes[40:] == [12] * 34


def test_new_items_get_the_largest_priority():
  items = sequence_twin.make_sequences(length=5, period=2, burn_in=1)
  histories = _make_histories(40, [[4, 6], [5], [100]])
  player = _make_player(
    items, histories, priority_exponent=0.5, min_priority=0.25
  )
  largest = [1.0, 4.0, 16.0, 2.25]
  expected = []
  for t in range(39):
    before = player.status().inserts
    player.step(largest[t % 4])
    new = player.status().inserts - before
    # √1, √4, √16 and √2.25.
    expected += [[1.0, 2.0, 4.0, 1.5][t % 4]] * new
  weights = player.weights()
  assert sorted(weights[weights > 0]) == sorted(expected)
  assert len(set(expected)) == 4


def test_resumes_from_saved_arrays():
  items = sequence_twin.make_sequences(length=6, period=2, burn_in=2)
  histories = _make_histories(60, [[4, 6], [9], [1, 2]])
  whole = _make_player(items, histories, max_size=9)
  for _ in range(37):
    whole.step()
  whole.transport.sample((), tf.constant(0))
  other = _make_player(items, histories, max_size=9)
  other.transport.restore(whole.transport.save())
  other._carry, other.time = whole._carry, whole.time
  for player in (whole, other):
    for _ in range(11):
      player.step()
  scripted_rollouts.assert_same_items(other.drawable(), whole.drawable())
  assert whole.status() == other.status()
  keys = [
    player.transport.sample((), tf.constant(0)).keys.numpy().tolist()
    for player in (whole, other)
  ]
  assert keys[0] == keys[1]
