"""Compares sequences cut inside a program with those of adders."""

import pytest

from repertory.components.anakin import sequences
from support.replay import scripted_rollouts, sequence_twin


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


# In practice, windows after a burn-in overlap. Rare: one step; a burn-in longer
# than the window, and windows without overlap.
@pytest.mark.parametrize('across_episodes', [False, True])
@pytest.mark.parametrize(
  ('length', 'period', 'burn_in'),
  [
    (7, 2, 3),
    pytest.param(2, None, 0, marks=pytest.mark.chaos),
    pytest.param(7, None, 4, marks=pytest.mark.chaos),
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


@pytest.mark.parametrize(
  ('max_size', 'lengths', 'across_episodes'),
  [
    (12, [[1, 2, 3, 4, 7], [5], [100]], False),
    pytest.param(2, [[6], [11]], False, marks=pytest.mark.chaos),
    (12, [[1, 2, 3, 4, 7], [100]], True),
    pytest.param(8, [[1], [1]], True, marks=pytest.mark.chaos),
  ],
)
def test_the_oldest_are_replaced_when_it_is_full(
  max_size, lengths, across_episodes
):
  items = sequence_twin.make_sequences(
    length=6, period=2, burn_in=2, across_episodes=across_episodes
  )
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
  items = sequence_twin.make_sequences(
    length=9, period=4, burn_in=0, across_episodes=False
  )
  histories = sequence_twin.make_histories(80, [[30], [1], [1], [1]])
  anchored, counts = _record(items, histories)
  player = _make_player(items, histories, max_size=4)
  for count in counts:
    player.step()
    scripted_rollouts.check_held(player, dict(anchored[:count]), 4)
    oldest = int(player.transport._oldest.numpy())
    assert all(time >= oldest for _, time in player.drawable())
