"""Tests of the sequence adders: hand-made tables, resets, errors."""

import dm_env
import numpy as np
import pytest

from repertory.components import adders, types
from support.replay import recording_writer, sequence_twin
from support.replay import sequence_tables as tables


@pytest.mark.parametrize(
  ('settings', 'steps', 'expected'), tables.PADDED.values(), ids=tables.PADDED
)
def test_items_of_episodes(settings, steps, expected):
  player = tables.Player(**settings)
  player.play(steps)
  assert player.items() == expected
  assert player.adder.num_items == len(expected)


@pytest.mark.parametrize(
  ('settings', 'steps', 'expected'), tables.ACROSS.values(), ids=tables.ACROSS
)
def test_items_across_episodes(settings, steps, expected):
  player = tables.Player(across_episodes=True, **settings)
  player.play(steps)
  assert player.items() == expected


FORGETTING = {
  'reset': lambda player: player.adder.reset(),
  'add_first': lambda player: None,
}


@pytest.mark.parametrize('forget', FORGETTING.values(), ids=FORGETTING)
@pytest.mark.parametrize('across_episodes', [False, True])
def test_open_items_are_forgotten(forget, across_episodes):
  """Later items have no past: their burn-in is padding."""
  player = tables.Player(burn_in=1, across_episodes=across_episodes)
  player.play([tables.mid(1), tables.mid(10), tables.mid(100)])
  forget(player)
  player.play([tables.mid(2), tables.mid(20), tables.mid(200)])
  assert player.adder.num_items == 2
  player.step(*tables.mid(2000))
  assert player.items() == [
    ([0, 1, 2, 3], '.F..', [0, 1, 10], [0, 1, 1], '.xx', 1),
    ([0, 5, 6, 7], '.F..', [0, 2, 20], [0, 1, 1], '.xx', 5),
    ([6, 7, 8, 9], '....', [20, 200, 2000], [1, 1, 1], 'xxx', 6),
  ]


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
  signature = sequences.signature(tables.SPEC)
  assert signature.extras == signature.state == ()
  one = np.ones([1], np.float32)
  first = dm_env.TimeStep(np.array([tables.FIRST]), 0 * one, one, np.array([5]))
  last = first._replace(step_type=np.array([tables.LAST]))
  writer = recording_writer.RecordingWriter(signature)
  for extras in [(), types.SequenceExtras()]:
    adder = sequences.make_adder(writer, 1)
    adder.add_first(first)
    adder.add(np.array([9], np.int32), last, extras)
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
  bundle_size = 4 if across_episodes else 1
  writer = sequence_twin.make_writer(length=4, bundle_size=bundle_size)
  sequence_twin.play(writer, sequences.make_adder(writer, 4), histories)
  assert writer.puts == expected


@pytest.mark.parametrize(
  ('batch_size', 'across_episodes'), [(3, True), (4, False)]
)
def test_bundles_that_slots_do_not_fill_are_refused(
  batch_size, across_episodes
):
  sequences = tables.make_sequences(across_episodes=across_episodes)
  writer = recording_writer.RecordingWriter(
    sequences.signature(tables.SPEC), bundle_size=2
  )
  message = f'of 2 and batch_size {batch_size}'
  with pytest.raises(ValueError, match=message):
    sequences.make_adder(writer, batch_size)
