"""Tests of the sequence adders: hand-made tables, resets, errors."""

import dm_env
import numpy as np
import pytest
from dm_env import specs as dm_env_specs

from repertory.components import adders, specs, types
from support.replay import recording_writer, sequence_twin

FIRST, MID, LAST = dm_env.StepType

# Specs of `Player`.
SPEC = specs.EnvironmentSpec(
  observations=dm_env_specs.Array((), np.int64),
  actions=dm_env_specs.Array((), np.int32),
  rewards=dm_env_specs.Array((), np.float32),
  discounts=dm_env_specs.BoundedArray((), np.float32, 0, 1),
)
EXTRAS_SPEC = types.SequenceExtras(state=dm_env_specs.Array((2,), np.float32))


def make_sequences(**settings):
  """Describes the items of a `Player`, of 4 observations by default."""
  return adders.Sequences(
    **{'length': 4, 'extras_spec': EXTRAS_SPEC, **settings}
  )


class Player:
  """Plays one slot, whose observations are numbered from 1."""

  def __init__(self, **settings):
    """Makes the adder, with settings of `Sequences`."""
    sequences = make_sequences(**settings)
    self._now = 0
    self.writer = recording_writer.RecordingWriter(
      sequences.signature(SPEC),
      version=lambda: 100 + self._now - 1,  # `add` lags by one.
    )
    self.adder = sequences.make_adder(self.writer, 1)

  def start(self):
    """Adds the first observation of an episode."""
    self._now += 1
    self.adder.add_first(self._timestep(FIRST, 0, 1))

  def step(self, step_type, reward, discount):
    """Adds a step's action and its results."""
    action = -1 if step_type == FIRST else 10 * self._now
    state = np.array([[self._now, -self._now]], np.float32)
    self._now += 1
    self.adder.add(
      np.array([action], np.int32),
      self._timestep(step_type, reward, discount),
      types.SequenceExtras(state=state),
    )

  def play(self, steps):
    self.start()
    for step in steps:
      self.step(*step)

  def _timestep(self, step_type, reward, discount):
    return dm_env.TimeStep(
      np.array([step_type], np.int32),
      np.array([reward], np.float32),
      np.array([discount], np.float32),
      np.array([self._now], np.int64),
    )

  def items(self):
    """Returns the items in the form of the tables below."""
    return [_read(item) for item in self.writer.items]


def _read(item):
  observations = item.observation.tolist()
  mask = ''.join('x' if mask else '.' for mask in item.mask)
  actions = []
  for here, happened in zip(observations, item.mask):
    actions.append(10 * here if happened else 0)
  assert item.action.tolist() == actions
  start = int(item.version) - 100
  # The last observation of an episode has no successor.
  ended = bool(observations[0]) and not item.mask[0]
  assert item.state.tolist() == ([0, 0] if ended else [start, -start])
  return (
    observations,
    ''.join('F' if first else '.' for first in item.first),
    item.reward.tolist(),
    item.discount.tolist(),
    mask,
    start,
  )


def mid(reward, discount=1):
  return MID, reward, discount


def end(reward):
  return LAST, reward, 0


def cut(reward):
  return LAST, reward, 1


AGAIN = FIRST, 0, 1

# Settings; steps after the first observation, which is 1; items: observations,
# first of an episode, rewards, discounts, mask, and where the state and the
# version are from.
PADDED = [
  (
    {},
    [mid(1), mid(10, 0.5), mid(100), mid(1000, 0.25), end(5)],
    [
      ([1, 2, 3, 4], 'F...', [1, 10, 100], [1, 0.5, 1], 'xxx', 1),
      ([4, 5, 6, 0], '....', [1000, 5, 0], [0.25, 0, 0], 'xx.', 4),
    ],
  ),
  (
    {'length': 5, 'burn_in': 2},
    [mid(1), mid(10), mid(100), mid(1000), end(5)],
    [
      ([0, 0, 1, 2, 3], '..F..', [0, 0, 1, 10], [0, 0, 1, 1], '..xx', 1),
      ([1, 2, 3, 4, 5], 'F....', [1, 10, 100, 1000], [1] * 4, 'xxxx', 1),
      ([3, 4, 5, 6, 0], '.....', [100, 1000, 5, 0], [1, 1, 0, 0], 'xxx.', 3),
    ],
  ),
]
ACROSS = [
  (
    {},
    [end(1), AGAIN, cut(2), AGAIN, end(3), AGAIN],
    [
      ([1, 2, 3, 4], 'F.F.', [1, 0, 2], [0, 0, 1], 'x.x', 1),
      ([4, 5, 6, 7], '.F.F', [0, 3, 0], [0, 0, 0], '.x.', 4),
    ],
  ),
  (
    {'burn_in': 1},
    [mid(1), end(10), AGAIN, mid(100), end(5), AGAIN],
    [
      ([0, 1, 2, 3], '.F..', [0, 1, 10], [0, 1, 0], '.xx', 1),
      ([2, 3, 4, 5], '..F.', [10, 0, 100], [0, 0, 1], 'x.x', 2),
      ([4, 5, 6, 7], 'F..F', [100, 5, 0], [1, 0, 0], 'xx.', 4),
    ],
  ),
]


@pytest.mark.parametrize('across_episodes', [False, True])
def test_items_by_hand(across_episodes):
  for settings, steps, expected in ACROSS if across_episodes else PADDED:
    player = Player(across_episodes=across_episodes, **settings)
    player.play(steps)
    assert player.items() == expected
    assert player.adder.num_items == len(expected)


FORGETTING = {
  'reset': lambda player: player.adder.reset(),
  'add_first': lambda player: None,
}


@pytest.mark.parametrize('forget', FORGETTING.values(), ids=FORGETTING)
@pytest.mark.parametrize('across_episodes', [False, True])
def test_open_items_are_forgotten(forget, across_episodes):
  """Later items have no past: their burn-in is padding."""
  player = Player(burn_in=1, across_episodes=across_episodes)
  player.play([mid(1), mid(10), mid(100)])
  forget(player)
  player.play([mid(2), mid(20), mid(200)])
  assert player.adder.num_items == 2
  player.step(*mid(2000))
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
  signature = sequences.signature(SPEC)
  assert signature.extras == signature.state == ()
  one = np.ones([1], np.float32)
  first = dm_env.TimeStep(np.array([FIRST]), 0 * one, one, np.array([5]))
  last = first._replace(step_type=np.array([LAST]))
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
  sequences = make_sequences(across_episodes=across_episodes)
  writer = recording_writer.RecordingWriter(
    sequences.signature(SPEC), bundle_size=2
  )
  message = f'of 2 and batch_size {batch_size}'
  with pytest.raises(ValueError, match=message):
    sequences.make_adder(writer, batch_size)
