"""Tests of the transition adder against hand-made tables and a slow twin."""

import dm_env
import numpy as np
import pytest
import tree
from dm_env import specs as dm_env_specs

from repertory.components import adders, specs
from support.replay import recording_writer, sequence_twin
from support.system import rare_cases

FIRST, MID, LAST = dm_env.StepType

# Observations 0, 1, 2, and actions of the same numbers.
SCALAR_SPEC = specs.EnvironmentSpec(
  observations=dm_env_specs.Array((), np.int64),
  actions=dm_env_specs.Array((), np.int32),
  rewards=dm_env_specs.Array((), np.float32),
  discounts=dm_env_specs.BoundedArray((), np.float32, 0, 1),
)
G = 0.5


class _Player:
  """Plays one slot, whose observations are numbered."""

  def __init__(self, n_step=1, shared=(), **settings):
    transitions = adders.Transitions(n_step, **{'discount': G, **settings})
    self.writer = recording_writer.RecordingWriter(
      transitions.signature(SCALAR_SPEC), shared
    )
    self.adder = transitions.make_adder(self.writer, 1)

  def start(self, observation):
    self.adder.add_first(_batch(observation, FIRST))

  def step(self, observation, step_type=MID, reward=0.0, discount=1.0):
    """Adds the step after the current observation; the action equals it."""
    action = np.array([100 + observation - 1], np.int32)
    self.adder.add(action, _batch(observation, step_type, reward, discount))

  def play(self, steps):
    """Plays an episode from observation 0 of rewards and discounts."""
    self.start(0)
    for t, step in enumerate(steps, 1):
      self.step(t, LAST if t == len(steps) else MID, *step)

  def items(self):
    """Returns (o, a, R, D, o') of all transitions, in order."""
    return [
      tuple(float(leaf) for leaf in tree.flatten(item))
      for item in self.writer.items
    ]


def _batch(observation, step_type=MID, reward=0.0, discount=1.0):
  """Returns a batch of one time step."""
  return dm_env.TimeStep(
    np.array([step_type], np.int32),
    np.array([reward], np.float32),
    np.array([discount], np.float32),
    np.array([observation], np.int64),
  )


# Rewards 1, 10, 100, ...: each digit of a sum shows its terms.
CASES = {
  'n3': (
    3,
    [(1, 1), (10, 1), (100, 1), (1000, 1), (10000, 0)],
    [
      (0, 1 + G * 10 + G**2 * 100, G**2, 3),
      (1, 10 + G * 100 + G**2 * 1000, G**2, 4),
      (2, 100 + G * 1000 + G**2 * 10000, 0, 5),
      (3, 1000 + G * 10000, 0, 5),
      (4, 10000, 0, 5),
    ],
  ),
  'n5_longer_than_the_episode': (
    5,
    [(1, 1), (10, 1), (100, 0)],
    [
      (0, 1 + G * 10 + G**2 * 100, 0, 3),
      (1, 10 + G * 100, 0, 3),
      (2, 100, 0, 3),
    ],
  ),
  # The discount that comes with a reward is for what follows it.
  'n3_discounts': (
    3,
    [(1, 0.25), (10, 0.5), (100, 0.75), (1000, 0.125)],
    [
      (
        0,
        1 + G * 0.25 * 10 + G**2 * 0.25 * 0.5 * 100,
        G**2 * 0.25 * 0.5 * 0.75,
        3,
      ),
      (
        1,
        10 + G * 0.5 * 100 + G**2 * 0.5 * 0.75 * 1000,
        G**2 * 0.5 * 0.75 * 0.125,
        4,
      ),
      (2, 100 + G * 0.75 * 1000, G * 0.75 * 0.125, 4),
      (3, 1000, 0.125, 4),
    ],
  ),
}


@pytest.mark.parametrize(
  ('n_step', 'steps', 'expected'), CASES.values(), ids=CASES
)
def test_transitions_of_an_episode(n_step, steps, expected):
  player = _Player(n_step)
  player.play(steps)
  assert player.items() == [(o, 100 + o, *rest) for o, *rest in expected]
  assert player.adder.num_items == len(steps)


def test_rewards_are_clipped_before_they_are_summed():
  player = _Player(n_step=2, max_abs_reward=2.0)
  player.play([(5, 1), (-7, 0)])
  assert player.items() == [
    (0, 100, 2 + G * -2, 0, 2),
    (1, 101, -2, 0, 2),
  ]


# Of o: image, place; a: force, move; R; D; o'; the extras. In place of all that
# is large: observations and extras, one action, or all but what is summed up.
@pytest.mark.parametrize(
  'shared', [[], [0, 6], [1, 2, 7, 8], [0, 1, 2, 3, 6, 7, 8]]
)
@pytest.mark.parametrize('n_step', [1, 5])
@pytest.mark.parametrize('seed', rare_cases.daily([0, 1], [0]))
def test_every_step_starts_one_transition(n_step, seed, shared):
  """Slots end at different times; each has what the twin makes, in order."""
  gamma = 0.8
  histories = sequence_twin.make_histories(
    80, [[1, 2, 3, 4, 5, 6, 13], [1, 2], [40]], seed
  )
  transitions = adders.Transitions(
    n_step, gamma, extras_spec=sequence_twin.EXTRAS_SPEC
  )
  writer = recording_writer.RecordingWriter(
    transitions.signature(sequence_twin.SPEC), shared
  )
  adder = transitions.make_adder(writer, len(histories))
  sequence_twin.play(writer, adder, histories)
  num_expected = 0
  for slot, history in enumerate(histories, 1):
    found = [i for i in writer.items if i.observation['place'][0] == slot]
    expected = sequence_twin.make_transitions(history, n_step, gamma)
    tree.map_structure(
      lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6),
      found, expected,
    )  # fmt: skip
    num_expected += len(expected)
  assert len(writer.items) == num_expected == adder.num_items


@pytest.mark.parametrize('shared', [[], [0, 4]])
def test_reset_drops_steps_of_a_continued_episode(shared):
  player = _Player(n_step=2, shared=shared)
  player.start(0)
  player.step(1, reward=1)
  player.adder.reset()
  player.step(2, reward=2)
  player.step(3, reward=3)
  assert player.items() == [(1, 101, 2 + G * 3, G, 3)]


def test_add_first_drops_open_episodes():
  player = _Player(n_step=3)
  player.start(0)
  player.step(1)
  player.start(10)
  player.step(11, LAST, reward=7, discount=0)
  assert player.items() == [(10, 110, 7, 0, 11)]


@pytest.mark.parametrize(
  ('settings', 'message'),
  [
    ({'n_step': 0}, 'n_step must be at least 1, got 0'),
    ({'batch_size': 0}, 'batch_size must be at least 1, got 0'),
    ({'discount': 1.01}, r'discount must be in \[0, 1\], got 1.01'),
    ({'discount': -0.1}, r'discount must be in \[0, 1\], got -0.1'),
    ({'discount': float('nan')}, r'discount must be in \[0, 1\], got nan'),
    ({'max_abs_reward': 0.0}, 'max_abs_reward must be positive or None, got 0'),
  ],
)
def test_arguments_are_checked(settings, message):
  settings = {'n_step': 1, 'discount': G, 'batch_size': 1} | settings
  batch_size = settings.pop('batch_size')
  with pytest.raises(ValueError, match=message):
    transitions = adders.Transitions(**settings)
    writer = recording_writer.RecordingWriter(
      transitions.signature(SCALAR_SPEC)
    )
    transitions.make_adder(writer, batch_size)
