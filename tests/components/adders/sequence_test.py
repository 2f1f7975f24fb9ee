"""Tests of the sequence adders: hand-made tables, forgetting, errors."""

import itertools

import dm_env
import numpy as np
import pytest
import tensorflow as tf
import tree

import replay_fixture
import sequence_tables as tables
import sequence_twin
from repertory.components import adders, replay, signals, types
from repertory.components.adders import sequence


@pytest.fixture(autouse=True)
def _no_threads_left():
  with replay_fixture.no_threads_left():
    yield


@pytest.fixture(name='connection')
def _connection():
  with tables.serve() as connection:
    yield connection


@pytest.mark.parametrize(
  ('settings', 'steps', 'expected'), tables.PADDED.values(), ids=tables.PADDED
)
def test_items_of_episodes(settings, steps, expected):
  with tables.serve(settings.get('length', 4)) as connection:
    player = tables.Player(connection, **settings)
    player.play(steps)
    player.adder.close()
    assert tables.items(connection) == expected
  assert player.adder.num_items == len(expected)


@pytest.mark.parametrize(
  ('settings', 'steps', 'expected'), tables.ACROSS.values(), ids=tables.ACROSS
)
def test_items_across_episodes(settings, steps, expected):
  with tables.serve(settings.get('length', 4)) as connection:
    player = tables.Player(connection, across_episodes=True, **settings)
    player.play(steps)
    player.adder.close()
    assert tables.items(connection) == expected


def test_items_are_written_when_they_are_complete(connection):
  player = tables.Player(connection)
  player.start()
  counts = []
  for step in [
    *[tables.mid(1)] * 7,
    tables.end(1),
    tables.AGAIN,
    tables.mid(1),
  ]:
    player.step(*step)
    # Back from `add`, they are in the table.
    counts.append(replay_fixture.table_status(connection).inserts)
  # After steps 3 and 6, and at the end after step 8.
  assert counts == [0, 0, 1, 1, 1, 2, 2, 3, 3, 3]
  player.adder.close()


def test_each_leaf_has_its_place():
  """The second of two episodes, padded on both sides; each leaf by hand."""
  history = sequence_twin.make_history(4, [[1], [2, 3]], 5)
  with replay_fixture.serve(
    replay_fixture.make_fifo(sequence_twin.signature(5))
  ) as connection:
    sequence_twin.play(
      lambda version: adders.SequenceAdder(
        replay_fixture.destination(connection, version=version),
        1,
        length=5,
        burn_in=1,
      ),
      [history],
    ).close()
    _, item = (item.data for item in replay_fixture.drain(connection))
  # Slot 4, episode 1: numbers from 4100 on; the actions are ten times that.
  expected = types.Sequence(
    observation={
      'place': [[0, 0, 0], [4, 1, 0], [4, 1, 1], [4, 1, 2], [0, 0, 0]],
      'image': [[[number], [number]] for number in (0, 4100, 4101, 4102, 0)],
    },
    first=[False, True, False, False, False],
    action={
      'move': [0, 41001, 41011, 0],
      'force': [[0, 0], [41002, 41003], [41012, 41013], [0, 0]],
    },
    reward=[0, 2, 3, 0],
    discount=[0, 1, 0, 0],
    mask=[False, True, True, False],
    extras={
      'logits': [
        [0, 0, 0],
        [-41001, -41002, -41003],
        [-41011, -41012, -41013],
        [0, 0, 0],
      ]
    },
    # Of moment 2, after two of the first episode.
    state={'core': [4002, -2], 'count': 2},
    version=7 * 2 + 3,
  )
  tree.map_structure_up_to(
    sequence_twin.signature(5), np.testing.assert_array_equal, item, expected
  )


@pytest.mark.parametrize('across_episodes', [False, True])
def test_slots_do_not_mix(across_episodes):
  """Each slot's items are those of the slot alone."""
  lengths = ([3, 1, 6, 9], [10, 2, 7], [1, 1, 1, 4, 3, 3, 1])
  histories = [
    sequence_twin.make_history(slot, [np.arange(1, n + 1) for n in row], 20)
    for slot, row in enumerate(lengths, 1)
  ]

  def play(chosen):
    memory = sequence_twin.Memory(sequence_twin.signature(5))
    sequence_twin.play(
      lambda version: adders.SequenceAdder(
        replay_fixture.destination(memory, version=version),
        len(chosen),
        length=5,
        burn_in=1,
        period=2,
        across_episodes=across_episodes,
      ),
      chosen,
    )
    return memory.items

  together = play(histories)
  for slot, history in enumerate(histories, 1):
    found = [item for item in together if sequence_twin.slot_of(item) == slot]
    assert len(found) >= 7
    sequence_twin.assert_equal(found, play([history]))


@pytest.mark.parametrize(
  ('steps', 'expected'), tables.EPISODES.values(), ids=tables.EPISODES
)
def test_items_of_the_episode_adder(connection, steps, expected):
  player = tables.Player(connection, adders.EpisodeAdder, max_length=3)
  player.play(steps)
  player.adder.close()
  assert tables.items(connection) == expected
  assert player.adder.num_items == len(expected)


@pytest.mark.parametrize('max_length', [1, 3])
def test_too_long_an_episode_is_refused(max_length):
  with tables.serve(max_length + 1) as connection:
    player = tables.Player(
      connection, adders.EpisodeAdder, max_length=max_length
    )
    # An earlier episode of just the length that is allowed.
    steps = [tables.mid(1)] * (max_length - 1)
    player.play([*steps, tables.end(1), tables.AGAIN, *steps])
    with pytest.raises(ValueError, match=f'max_length = {max_length} steps'):
      player.step(*tables.mid(1))
    player.adder.close()
    assert len(tables.items(connection)) == 1


def test_too_long_an_episode_of_one_slot_is_refused():
  """The others may end in that step or be at their beginning."""
  histories = [
    sequence_twin.make_history(slot, [[1] * length, [1] * 9], 6)
    for slot, length in enumerate([3, 4, 2], 1)
  ]
  memory = sequence_twin.Memory(sequence_twin.signature(4))
  with pytest.raises(ValueError, match='max_length = 3 steps'):
    sequence_twin.play(
      lambda version: adders.EpisodeAdder(
        replay_fixture.destination(memory, version=version),
        3,
        max_length=3,
      ),
      histories,
    )
  # That of slot 3 has ended before.
  assert [sequence_twin.slot_of(item) for item in memory.items] == [3]


FORGETTING = {
  'reset': lambda player: player.adder.reset(),
  'add_first': lambda player: None,
}


@pytest.mark.parametrize('forget', FORGETTING.values(), ids=FORGETTING)
@pytest.mark.parametrize('across_episodes', [False, True])
def test_open_items_are_forgotten(connection, forget, across_episodes):
  """What comes next has no past: its burn-in is padding."""
  player = tables.Player(connection, burn_in=1, across_episodes=across_episodes)
  player.play([tables.mid(1), tables.mid(10), tables.mid(100)])
  forget(player)
  player.play([tables.mid(2), tables.mid(20), tables.mid(200)])
  assert player.adder.num_items == 2
  player.step(*tables.mid(2000))
  player.adder.close()
  assert tables.items(connection) == [
    ([0, 1, 2, 3], '.F..', [0, 1, 10], [0, 1, 1], '.xx', 1),
    ([0, 5, 6, 7], '.F..', [0, 2, 20], [0, 1, 1], '.xx', 5),
    ([6, 7, 8, 9], '....', [20, 200, 2000], [1, 1, 1], 'xxx', 6),
  ]


@pytest.mark.parametrize('forget', FORGETTING.values(), ids=FORGETTING)
def test_episode_adder_forgets_too(connection, forget):
  player = tables.Player(connection, adders.EpisodeAdder, max_length=3)
  for _ in range(4):
    player.play([tables.mid(1), tables.mid(1)])
    forget(player)
  player.play([tables.mid(1), tables.mid(10), tables.end(100)])
  player.adder.close()
  assert tables.items(connection) == [
    ([13, 14, 15, 16], 'F...', [1, 10, 100], [1, 1, 0], 'xxx', 13)
  ]


def test_reset_keeps_what_is_complete(connection):
  """Items arrive although they were still on their way."""
  player = tables.Player(connection, max_pending_items=100)
  for _ in range(20):
    player.play([tables.mid(1)] * 9)  # Three items.
    player.adder.reset()
  assert replay_fixture.table_status(connection).inserts == 60
  player.adder.close()


def test_reset_forgets_what_is_open(connection):
  player = tables.Player(connection)
  player.play([tables.mid(1)] * 2)
  player.adder.reset()
  # Of the episode that goes on, the moments behind the reset.
  for _ in range(3):
    player.step(*tables.mid(1))
  player.adder.close()
  assert [observations for observations, *_ in tables.items(connection)] == [
    [3, 4, 5, 6]
  ]


def test_close_hands_over_what_is_complete(connection):
  player = tables.Player(connection, max_pending_items=100)
  player.play([tables.mid(1)] * 100)  # The last step is of an open item.
  player.adder.close()
  starts = [start for *_, start in tables.items(connection)]
  assert starts == list(range(1, 98, 3))


def test_priority_is_asked_for_each_item(connection):
  priorities = itertools.count(1)
  player = tables.Player(connection, priority=lambda: float(next(priorities)))
  player.play([tables.mid(1)] * 4 + [tables.end(1)])
  player.adder.close()
  items = replay_fixture.drain(connection)
  assert [item.info.priority for item in items] == [1, 2]


@pytest.mark.parametrize('priority', [float('nan'), -0.5])
def test_impossible_priorities_are_refused(connection, priority):
  player = tables.Player(connection, priority=lambda: priority)
  with pytest.raises(ValueError, match=f'priority .* {priority}'):
    player.play([tables.end(1)])
  player.adder.close()
  assert replay_fixture.table_status(connection).inserts == 0


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
  memory = sequence_twin.Memory(())
  with pytest.raises(ValueError, match=message):
    adders.SequenceAdder(replay_fixture.destination(memory), **settings)


def test_arguments_of_the_episode_adder_are_checked():
  memory = sequence_twin.Memory(sequence_twin.signature(4))
  destination = replay_fixture.destination(memory)
  with pytest.raises(ValueError, match='max_length must be at least 1, got 0'):
    adders.EpisodeAdder(destination, 1, max_length=0)
  with pytest.raises(ValueError, match='batch_size must be at least 1, got 0'):
    adders.EpisodeAdder(destination, 0, max_length=1)


def test_signature_has_the_specs_of_a_sequence():
  assert sequence_twin.signature(6) == types.Sequence(
    observation={
      'place': tf.TensorSpec((6, 3), tf.int64),
      'image': tf.TensorSpec((6, 2, 1), tf.float32),
    },
    first=tf.TensorSpec((6,), tf.bool),
    action={
      'move': tf.TensorSpec((5,), tf.int32),
      'force': tf.TensorSpec((5, 2), tf.float32),
    },
    reward=tf.TensorSpec((5,), tf.float32),
    discount=tf.TensorSpec((5,), tf.float32),
    mask=tf.TensorSpec((5,), tf.bool),
    extras={'logits': tf.TensorSpec((5, 3), tf.float32)},
    state={
      'core': tf.TensorSpec((2,), tf.float32),
      'count': tf.TensorSpec((), tf.int64),
    },
    version=tf.TensorSpec((), tf.int64),
  )


def test_without_extras():
  """A policy that gives none, as `SequenceExtras` or as nothing at all."""
  signature = sequence.signature(tables.SPEC, 3)
  assert signature.extras == signature.state == ()
  one = np.ones([1], np.float32)
  first = dm_env.TimeStep(np.array([tables.FIRST]), 0 * one, one, np.array([5]))
  last = first._replace(step_type=np.array([tables.LAST]))
  with replay_fixture.serve(replay_fixture.make_fifo(signature)) as connection:
    for extras in [(), types.SequenceExtras()]:
      adder = adders.SequenceAdder(
        replay_fixture.destination(connection), 1, length=3
      )
      adder.add_first(first)
      adder.add(np.array([9], np.int32), last, extras)
      adder.close()
    items = [item.data for item in replay_fixture.drain(connection)]
  assert [item.extras for item in items] == [(), ()]
  assert [item.state for item in items] == [(), ()]
  assert [item.action.tolist() for item in items] == [[9, 0]] * 2


class TestBackPressure:
  """A table that takes one item more for each that is drawn."""

  @pytest.fixture(name='make')
  def _make(self):
    rate_limit = replay.RateLimit(1.0, min_size=1, error_buffer=1.0)
    with tables.serve(rate_limit=rate_limit) as connection:

      def make(timeout_seconds):
        limited = replay.Connection(
          connection.address, timeout_seconds=timeout_seconds
        )
        player = tables.Player(limited)
        player.play([tables.mid(1)] * 8)  # Two items, all that it takes.
        return limited, player

      yield make

  def test_time_out(self, make):
    connection, player = make(0.5)
    with pytest.raises(TimeoutError, match=r"0\.5 seconds .*table 'replay'"):
      replay_fixture.Call(player.step, *tables.mid(1)).result()
    connection.stop.set()
    player.adder.close()

  def test_stop_signal(self, make):
    connection, player = make(60)
    call = replay_fixture.Call(player.step, *tables.mid(1))
    assert call.is_waiting()
    connection.stop.set()
    with pytest.raises(signals.Stopped):
      call.result(1)
    replay_fixture.Call(player.adder.close).result(1)

  def test_goes_on_once_sampled(self, make):
    connection, player = make(60)
    call = replay_fixture.Call(player.step, *tables.mid(1))
    assert call.is_waiting()
    found = replay_fixture.sample(connection, 1)
    call.result()
    found += replay_fixture.sample(connection, 1)
    player.step(*tables.end(1))
    found += replay_fixture.sample(connection, 2)
    player.adder.close()
    # None was lost or doubled.
    starts = [int(item.data.version) - 100 for item in found]
    assert starts == [1, 4, 7, 10]


def _play_slots(bundle_size, num_steps=14):
  """Two slots take random steps; returns the items, in the order written."""
  signature = sequence.signature(tables.SPEC, 4, tables.EXTRAS_SPEC)
  table = replay.queue(signature, 100).bundled(bundle_size)
  random = np.random.default_rng(0)
  with replay_fixture.serve(table) as connection:
    adder = adders.SequenceAdder(
      replay_fixture.destination(connection),
      4,
      length=4,
      across_episodes=True,
    )

    def timestep(step_types):
      return dm_env.TimeStep(
        np.array(step_types, np.int32),
        random.random(4, np.float32),
        random.random(4, np.float32),
        random.integers(0, 99, 4),
      )

    adder.add_first(timestep([0, 0, 0, 0]))
    for _ in range(num_steps):
      adder.add(
        random.integers(0, 9, 4, np.int32),
        timestep(random.integers(0, 3, 4)),
        types.SequenceExtras(state=random.random([4, 2], np.float32)),
      )
    status = replay.table_status(connection.client, [table])[table.name]
    assert adder.num_items == status.inserts
    # Each of the 4 slots ends an item every 3 steps.
    assert adder.num_items == 4 * (num_steps // 3)
    found = [item.data for item in replay_fixture.drain(connection)]
    adder.close()
  return found


@pytest.mark.parametrize('bundle_size', [2, 4])
def test_bundles_hold_the_same_items(bundle_size):
  for lone, bundled in zip(
    _play_slots(1), _play_slots(bundle_size), strict=True
  ):
    for ours, theirs in zip(
      tree.flatten(lone), tree.flatten(bundled), strict=True
    ):
      assert ours.dtype == theirs.dtype
      np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize(
  ('batch_size', 'across_episodes'), [(3, True), (4, False)]
)
def test_bundles_that_slots_do_not_fill_are_refused(
  batch_size, across_episodes
):
  signature = sequence.signature(tables.SPEC, 4, tables.EXTRAS_SPEC)
  table = replay.queue(signature, 100).bundled(2)
  with (
    replay_fixture.serve(table) as connection,
    pytest.raises(ValueError, match=f'of 2, and batch_size is {batch_size}'),
  ):
    adders.SequenceAdder(
      replay_fixture.destination(connection),
      batch_size,
      length=4,
      across_episodes=across_episodes,
    )


def test_bundles_on_their_way_count_as_items():
  signature = sequence.signature(tables.SPEC, 4, tables.EXTRAS_SPEC)
  table = replay.queue(signature, 4).bundled(2)
  with replay_fixture.serve(table) as connection:
    adder = adders.SequenceAdder(
      replay_fixture.destination(connection, max_pending_items=3),
      2,
      length=4,
      across_episodes=True,
    )
    step = dm_env.TimeStep(
      np.ones([2], np.int32),
      np.ones([2], np.float32),
      np.ones([2], np.float32),
      np.ones([2], np.int64),
    )
    extras = types.SequenceExtras(state=np.ones([2, 2], np.float32))
    adder.add_first(step._replace(step_type=np.zeros([2], np.int32)))
    for expected in (False, False, False, False, False, True):
      adder.put(np.ones([2], np.int32), step, extras)
      assert adder.is_ahead() == expected
    adder.wait()
    assert not adder.is_ahead()
    adder.close()
