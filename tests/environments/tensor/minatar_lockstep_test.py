"""Tests that tensor games equal MinAtar's own, given the same random draws."""

import numpy as np
import pytest
import tensorflow as tf

from repertory.environments import tensor
from repertory.environments.tensor import minatar as games
from support.environments import minatar_players, minatar_twins
from support.system import rare_cases

minatar = pytest.importorskip('minatar')

_CLASSES = {
  'asterix': games.Asterix,
  'breakout': games.Breakout,
  'freeway': games.Freeway,
  'seaquest': games.Seaquest,
  'space_invaders': games.SpaceInvaders,
}
_FEW = ['breakout', 'space_invaders']
_DEFAULTS = {'sticky_actions': 0.1, 'full_actions': True, 'ramping': True}
_PLAIN = {'sticky_actions': 0.0, 'full_actions': False, 'ramping': False}
# Total steps over all rows.
_TOTAL_STEPS = 5_200
_NUM_ROWS = 20


def _fill(value):
  return lambda like: value


def _board(*places):
  """Returns a board with 1 at these rows and columns."""
  board = np.zeros((10, 10))
  for row, column in places:
    board[row, column] = 1
  return board


def _place(board):
  return lambda like: board > 0


_LAST_BRICK = _board((3, 5))


def _put(slot, **values):
  """Returns a function that puts values into a slot of each row's objects."""

  def put(things):
    changed = {}
    for part, value in values.items():
      changed[part] = getattr(things, part).copy()  # [slots]
      changed[part][slot] = value
    return things._replace(**changed)

  return put


# The ball meets a brick of either row in adjacent steps.
_GAPPED_BRICKS = _board(
  *((1, column) for column in range(10)),
  *((3, column) for column in (0, 3, 4, 5, 6, 9)),
)
_LAST_ALIENS = _board((4, 3), (4, 4))
_LANDED_ALIENS = _board((9, 1), (3, 4), (3, 5), (2, 6))


# Initial states that random play rarely or never reaches, by game: their
# changes in MinAtar and in the tensor game.
_LATE_STARTS = {
  'asterix-fast': (
    {'spawn_speed': 2, 'move_speed': 2, 'ramp_index': 7, 'ramp_timer': 14},
    {
      'spawn_period': _fill(2),
      'move_period': _fill(2),
      'ramps': _fill(7),
      'ramp_wait': _fill(14),
    },
  ),
  'breakout-cleared': (
    {'brick_map': _LAST_BRICK},
    {'bricks': _place(_LAST_BRICK[1:4])},
  ),
  'breakout-gapped': (
    {'brick_map': _GAPPED_BRICKS},
    {'bricks': _place(_GAPPED_BRICKS[1:4])},
  ),
  'freeway-cross': (
    {'pos': 2, 'terminate_timer': 40},
    {'y': _fill(2), 'time': _fill(40)},
  ),
  'seaquest-full': (
    {
      'diver_count': 6,
      'divers': [[5, 1, True, 5]],
      'e_spawn_timer': 3,
      'oxygen': 30,
    },
    {
      'held': _fill(6),
      'divers': _put(1, x=5, y=1, step=1, wait=5),
      'spawn_wait': _fill(3),
      'oxygen': _fill(30),
    },
  ),
  'seaquest-crowded': (
    {
      'diver_count': 5,
      'e_spawn_speed': 1,
      'e_spawn_timer': 1,
      'move_speed': 2,
    },
    {
      'held': _fill(5),
      'spawn_period': _fill(1),
      'spawn_wait': _fill(1),
      'move_period': _fill(2),
    },
  ),
  'seaquest-breathless': ({'oxygen': 12}, {'oxygen': _fill(12)}),
  # In the third step the enemy moves into the bullet and shoots.
  'seaquest-last_shot': (
    {'e_subs': [[3, 4, True, 2, 2]], 'f_bullets': [[7, 4, False]]},
    {
      'enemies': _put(
        0, x=3, y=4, step=1, armed=True, move_wait=2, shot_wait=2
      ),
      'num_spawned': _fill(1),
      'bullets': _put(1, x=7, y=4, step=-1),
    },
  ),
  'space_invaders-last': (
    {'alien_map': _LAST_ALIENS, 'enemy_move_interval': 7},
    {'aliens': _place(_LAST_ALIENS), 'move_period': _fill(7)},
  ),
  'space_invaders-landed': (
    {'alien_map': _LANDED_ALIENS},
    {'aliens': _place(_LANDED_ALIENS)},
  ),
}


def _make_game(name, settings, changes):
  """Makes a tensor game whose initial states have changes."""

  class Changed(_CLASSES[name]):
    def _begin(self, draws):
      state = super()._begin(draws)
      changed = {
        part: make(getattr(state, part)) for part, make in changes.items()
      }
      return state._replace(**changed)

  return Changed(**settings)


def _compare(name, settings, changes=({}, {}), steps=_TOTAL_STEPS):
  """Plays rows of a tensor game and references alike; returns the events."""
  # Freeway's unchanged episodes have 2,501 steps.
  num_rows = 2 if name == 'freeway' and not changes[0] else _NUM_ROWS
  game = _make_game(name, settings, changes[1])
  counters = tensor.initial_counters(range(num_rows))
  twins = [
    minatar_twins.Twin(minatar, name, counter, settings, changes[0])
    for counter in counters.numpy()
  ]
  state = game.initial_state(counters)
  step = tf.function(game.step, autograph=False)
  step = step.get_concrete_function(state, tf.zeros([num_rows], tf.int32))
  random = np.random.default_rng(5)
  moves = range(6) if settings['full_actions'] else game.useful_moves
  ends, total = 0, 0.0
  for _ in range(steps // num_rows):
    actions = [
      minatar_players.choose(name, twin.game, moves, random) for twin in twins
    ]
    state, timestep = step(
      *tf.nest.flatten(state), tf.constant(actions, tf.int32)
    )
    found = [part.numpy() for part in timestep]
    expected = zip(*map(minatar_twins.Twin.step, twins, actions))
    for one, other in zip(found, expected):
      np.testing.assert_array_equal(one, np.stack(other))
    ends += int(np.sum(found[0] == 2))
    total += float(np.sum(found[1]))
  return ends, total


@pytest.mark.parametrize('name', rare_cases.daily(_CLASSES, _FEW))
def test_equals_minatar(name):
  ends, total = _compare(name, _DEFAULTS)
  assert ends >= 2
  assert total > 5


@pytest.mark.parametrize('name', rare_cases.daily(_CLASSES, _FEW))
def test_equals_minatar_without_chance_and_ramping(name):
  changes = ({}, {})
  if name == 'freeway':
    changes = _LATE_STARTS['freeway-cross']
  ends, _ = _compare(name, _PLAIN, changes)
  assert ends >= 2


@pytest.mark.parametrize(
  'start',
  rare_cases.daily(_LATE_STARTS, ['breakout-gapped', 'freeway-cross']),
)
def test_equals_minatar_late_in_a_game(start):
  name = start.partition('-')[0]
  ends, _ = _compare(name, _DEFAULTS, _LATE_STARTS[start], steps=5000)
  assert ends >= 8
