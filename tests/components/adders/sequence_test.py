"""Tests of the sequence adders: items by hand, resets, errors."""

import dm_env
import numpy as np
import pytest

from repertory.components import adders, specs, types
from support.replay import recording_writer, sequence_twin

_SPEC = specs.EnvironmentSpec(
  observations=specs.Array((), np.int64),
  actions=specs.Array((), np.int32),
  rewards=specs.Array((), np.float32),
  discounts=specs.BoundedArray((), np.float32, 0, 1),
)


@pytest.mark.parametrize(
  ('settings', 'expected'),
  [
    (
      {},
      [
        ([1, 2, 3, 4], 'F...', [1, 10, 100], [1, 0.5, 1], 'xxx'),
        ([4, 5, 0, 0], '....', [1000, 0, 0], [0, 0, 0], 'x..'),
        ([6, 7, 0, 0], 'F...', [5, 0, 0], [1, 0, 0], 'x..'),
      ],
    ),
    (
      {'across_episodes': True},
      [
        ([1, 2, 3, 4], 'F...', [1, 10, 100], [1, 0.5, 1], 'xxx'),
        ([4, 5, 6, 7], '..F.', [1000, 0, 5], [0, 0, 1], 'x.x'),
      ],
    ),
    (
      {'burn_in': 1},
      [
        ([0, 1, 2, 3], '.F..', [0, 1, 10], [0, 1, 0.5], '.xx'),
        ([2, 3, 4, 5], '....', [10, 100, 1000], [0.5, 1, 0], 'xxx'),
        ([0, 6, 7, 0], '.F..', [0, 5, 0], [0, 1, 0], '.x.'),
      ],
    ),
  ],
)
def test_items_by_hand(settings, expected):
  """Episodes of four steps and one, of observations 1 to 5 and 6 to 7."""
  history = sequence_twin.make_history(
    1, [[1, 10, 100, 1000], [5]], 7, [[1, 0.5, 1, 0], [1]]
  )
  numbers = {
    tuple(moment.observation['place']): number
    for number, moment in enumerate(history, 1)
  }
  sequences = sequence_twin.make_sequences(length=4, **settings)
  assert [
    (
      [numbers.get(tuple(place), 0) for place in item.observation['place']],
      ''.join('F' if first else '.' for first in item.first),
      item.reward.tolist(),
      item.discount.tolist(),
      ''.join('x' if happened else '.' for happened in item.mask),
    )
    for item in sequence_twin.record(sequences, [history])
  ] == expected


@pytest.mark.parametrize('resets', [False, True])
@pytest.mark.parametrize('across_episodes', [False, True])
def test_open_items_are_forgotten(resets, across_episodes):
  """Later items have no past: their burn-in is padding."""
  settings = {'length': 4, 'burn_in': 1, 'across_episodes': across_episodes}
  writer = sequence_twin.make_writer(length=4)
  adder = sequence_twin.make_sequences(**settings).make_adder(writer, 1)
  expected = []
  for slot, num_moments in ((1, 4), (2, 5)):
    history = sequence_twin.make_history(slot, [[1.0] * 9], num_moments)
    sequence_twin.play(writer, adder, [history])
    if resets:
      adder.reset()
    expected += sequence_twin.make_items(history, **settings)
  assert len(expected) == 3
  sequence_twin.assert_equal(writer.items, expected)


@pytest.mark.parametrize(
  ('settings', 'message'),
  [
    ({'burn_in': -1}, 'burn_in must be at least 0, got -1'),
    ({'length': 1}, r'length must be .* burn_in \+ 2 = 2, .* got 1'),
    ({'length': 4, 'burn_in': 3}, r'length must be .* = 5, .* got 4'),
    ({'period': 0}, r'period must be in .* \[1, 3\].* got 0'),
    # The steps between the last observation and the next would be dropped.
    ({'period': 4}, r'period must be in .* \[1, 3\].* got 4'),
    ({'period': 3, 'burn_in': 1}, r'period must be in .* \[1, 2\].* got 3'),
    ({'batch_size': 0}, 'batch_size must be at least 1, got 0'),
  ],
)
def test_arguments_are_checked(settings, message):
  settings = {'batch_size': 1, 'length': 4} | settings
  batch_size = settings.pop('batch_size')
  with pytest.raises(ValueError, match=message):
    writer = recording_writer.RecordingWriter(())
    adders.Sequences(**settings).make_adder(writer, batch_size)


def test_without_extras():
  """The policy has no extras, as `SequenceExtras` or as an empty tuple."""
  sequences = adders.Sequences(length=3)
  signature = sequences.signature(_SPEC)
  assert signature.extras == signature.state == ()
  one = np.ones([1], np.float32)
  first, _, last = (np.array([int(kind)]) for kind in dm_env.StepType)
  start = dm_env.TimeStep(first, 0 * one, one, np.array([5]))
  writer = recording_writer.RecordingWriter(signature)
  for extras in [(), types.SequenceExtras()]:
    adder = sequences.make_adder(writer, 1)
    adder.add_first(start)
    adder.add(np.array([9], np.int32), start._replace(step_type=last), extras)
  assert [item.extras for item in writer.items] == [(), ()]
  assert [item.state for item in writer.items] == [(), ()]
  assert [item.action.tolist() for item in writer.items] == [[9, 0]] * 2


@pytest.mark.parametrize(
  ('across_episodes', 'expected'),
  [(True, [4, 4]), (False, [1, 3, 4])],
)
def test_items_of_slots_that_end_together_come_together(
  across_episodes, expected
):
  lengths = [[9], [9], [9], [2, 6]]
  histories = [
    sequence_twin.make_history(slot, [[1] * n for n in row], 8)
    for slot, row in enumerate(lengths, 1)
  ]
  sequences = sequence_twin.make_sequences(
    length=4, across_episodes=across_episodes
  )
  assert sequences.slots_end_together == across_episodes
  writer = sequence_twin.make_writer(length=4)
  sequence_twin.play(writer, sequences.make_adder(writer, 4), histories)
  assert writer.puts == expected
