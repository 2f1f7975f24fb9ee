"""Hand-made tables of items that sequence adders make of a slot's steps."""

import dm_env
import numpy as np
from dm_env import specs as dm_env_specs

from repertory.components import adders, specs, types
from support.replay import recording_writer

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
PADDED = {
  'ends_where_an_item_does': (
    {},
    [mid(1), mid(10), end(100)],
    [([1, 2, 3, 4], 'F...', [1, 10, 100], [1, 1, 0], 'xxx', 1)],
  ),
  'ends_inside': (
    {},
    [mid(1), mid(10, 0.5), mid(100), mid(1000, 0.25), end(5)],
    [
      ([1, 2, 3, 4], 'F...', [1, 10, 100], [1, 0.5, 1], 'xxx', 1),
      ([4, 5, 6, 0], '....', [1000, 5, 0], [0.25, 0, 0], 'xx.', 4),
    ],
  ),
  'one_step_truncated': (
    {},
    [cut(7)],
    [([1, 2, 0, 0], 'F...', [7, 0, 0], [1, 0, 0], 'x..', 1)],
  ),
  'burn_in': (
    {'length': 5, 'burn_in': 2},
    [mid(1), mid(10), mid(100), mid(1000), end(5)],
    [
      ([0, 0, 1, 2, 3], '..F..', [0, 0, 1, 10], [0, 0, 1, 1], '..xx', 1),
      ([1, 2, 3, 4, 5], 'F....', [1, 10, 100, 1000], [1] * 4, 'xxxx', 1),
      ([3, 4, 5, 6, 0], '.....', [100, 1000, 5, 0], [1, 1, 0, 0], 'xxx.', 3),
    ],
  ),
}
ACROSS = {
  'over_an_end': (
    {},
    [mid(1), end(10), AGAIN, mid(100), mid(1000), mid(5)],
    [
      ([1, 2, 3, 4], 'F..F', [1, 10, 0], [1, 0, 0], 'xx.', 1),
      ([4, 5, 6, 7], 'F...', [100, 1000, 5], [1, 1, 1], 'xxx', 4),
    ],
  ),
  'single_steps': (
    {},
    [end(1), AGAIN, cut(2), AGAIN, end(3), AGAIN],
    [
      ([1, 2, 3, 4], 'F.F.', [1, 0, 2], [0, 0, 1], 'x.x', 1),
      ([4, 5, 6, 7], '.F.F', [0, 3, 0], [0, 0, 0], '.x.', 4),
    ],
  ),
  'burn_in_is_padding_once': (
    {'burn_in': 1},
    [mid(1), end(10), AGAIN, mid(100), end(5), AGAIN],
    [
      ([0, 1, 2, 3], '.F..', [0, 1, 10], [0, 1, 0], '.xx', 1),
      ([2, 3, 4, 5], '..F.', [10, 0, 100], [0, 0, 1], 'x.x', 2),
      ([4, 5, 6, 7], 'F..F', [100, 5, 0], [1, 0, 0], 'xx.', 4),
    ],
  ),
}
