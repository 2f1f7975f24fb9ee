"""MinAtar's Space Invaders in TensorFlow: shoot a swarm of aliens."""

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from repertory.environments.tensor.minatar import game
from repertory.environments.tensor.minatar.game import LAST, SIZE

_FIRE_PAUSE = 5
_MOVE_PERIOD = 12
_SHORTEST_MOVE_PERIOD = 6
_SHOT_PERIOD = 10
# The initial swarm, [10, 10].
_SWARM = np.pad(np.ones((4, 6), np.bool_), ((0, 6), (2, 2)))
_ROWS = np.arange(SIZE, dtype=np.int32)[:, None]
_COLUMNS = np.arange(SIZE, dtype=np.int32)


class SpaceInvadersState(NamedTuple):
  """State of the game, `[B, ...]`."""

  x: game.Leaf  # Column of the cannon, in the last row; int32.
  bullets: game.Leaf  # The cannon's bullets, bool `[B, 10, 10]`.
  bombs: game.Leaf  # The aliens' bullets, bool `[B, 10, 10]`.
  aliens: game.Leaf  # The aliens, bool `[B, 10, 10]`.
  step: game.Leaf  # Direction of the aliens, 1 right or -1 left; int32.
  fire_wait: game.Leaf  # Steps until the cannon can fire, int32.
  move_wait: game.Leaf  # Steps until the aliens move, int32.
  shot_wait: game.Leaf  # Steps until one of them shoots, int32.
  # Upper bound of the steps between two moves of the aliens; a smaller number
  # of aliens lowers it further. int32.
  move_period: game.Leaf


class SpaceInvaders(game.Game):
  """Move the cannon, fire, and avoid bullets.

  The aliens move sideways, then a row down, and faster when few are left. The
  one in the column closest to the cannon shoots. Reward: 1 for each alien. A
  new swarm follows, faster at first. The game is over when an alien or a bullet
  is at the cannon, or when the aliens cannot go further down.

  Channels: cannon, alien, alien moving left, alien moving right, the cannon's
  bullets, the aliens' bullets.
  """

  num_channels = 6
  useful_moves = (game.STAY, game.LEFT, game.RIGHT, game.FIRE)

  def _begin(self, draws: tf.Tensor) -> SpaceInvadersState:
    del draws
    return SpaceInvadersState(
      x=5,
      bullets=np.zeros_like(_SWARM),
      bombs=np.zeros_like(_SWARM),
      aliens=_SWARM,
      step=-1,
      fire_wait=0,
      move_wait=_MOVE_PERIOD,
      shot_wait=_SHOT_PERIOD,
      move_period=_MOVE_PERIOD,
    )

  def _play(
    self, state: SpaceInvadersState, move: tf.Tensor, draws: tf.Tensor
  ) -> tuple[SpaceInvadersState, tf.Tensor, tf.Tensor]:
    del draws
    fires = tf.equal(move, game.FIRE) & tf.equal(state.fire_wait, 0)
    x = game.move_sideways(state.x, move)
    # A bullet moves in the step in which it is fired.
    muzzle = _mark(x, tf.fill(x.shape, LAST)) & fires[:, None, None]
    bullets = _scroll(state.bullets | muzzle, -1)
    bombs = _scroll(state.bombs, 1)
    before = state.aliens[:, LAST]  # [B, 10]
    swarm, landed = _march(state)
    aliens = swarm.aliens
    threats = bombs[:, LAST] | before | aliens[:, LAST]
    at_cannon = tf.equal(x[:, None], _COLUMNS)
    over = landed | tf.reduce_any(threats & at_cannon, axis=1)

    shoots = tf.equal(state.shot_wait, 0)
    bombs |= _find_shooter(aliens, x) & shoots[:, None, None]
    killed = aliens & bullets
    aliens &= ~killed
    kills = tf.reduce_sum(game.to_int(killed), axis=[1, 2])
    state = swarm._replace(
      x=x,
      bullets=bullets & ~killed,
      bombs=bombs,
      fire_wait=game.count_down(state.fire_wait, fires, _FIRE_PAUSE),
      shot_wait=game.count_down(state.shot_wait, shoots, _SHOT_PERIOD),
    )
    # A new swarm follows the last alien.
    cleared = ~tf.reduce_any(aliens, axis=[1, 2])
    state = state._replace(aliens=aliens | (cleared[:, None, None] & _SWARM))
    if self._ramping:
      faster = cleared & (state.move_period > _SHORTEST_MOVE_PERIOD)
      period = state.move_period - game.to_int(faster)
      state = state._replace(move_period=period)
    return state, kills, over

  def _show(self, state: SpaceInvadersState) -> list[tf.Tensor]:
    leftward = (state.step < 0)[:, None, None]
    return [
      game.mark(state.x, tf.fill(state.x.shape, LAST)),
      state.aliens,
      state.aliens & leftward,
      state.aliens & ~leftward,
      state.bullets,
      state.bombs,
    ]


def _mark(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
  """Returns boards that are true at one field only, bool `[B, 10, 10]`."""
  column = tf.equal(x[:, None, None], _COLUMNS)
  return column & tf.equal(y[:, None, None], _ROWS)


def _scroll(board: tf.Tensor, rows: int) -> tf.Tensor:
  """Scrolls a board down by one row, or up if `rows` is -1."""
  if rows > 0:
    return tf.pad(board[:, :-1], [[0, 0], [1, 0], [0, 0]])
  return tf.pad(board[:, 1:], [[0, 0], [0, 1], [0, 0]])


def _march(state: SpaceInvadersState) -> tuple[SpaceInvadersState, tf.Tensor]:
  """Moves the aliens when they are due.

  Returns:
    The state with updated `aliens`, `step` and `move_wait`; and whether aliens
    in the last row should have moved down, bool `[B]`. Those wrap around to the
    first row, which shows on the last board of the episode.
  """
  aliens, step = state.aliens, state.step
  moves = tf.equal(state.move_wait, 0)
  columns = tf.reduce_any(aliens, axis=1)  # [B, 10]
  at_edge = tf.where(step < 0, columns[:, 0], columns[:, LAST])
  sinks = moves & at_edge
  landed = sinks & tf.reduce_any(aliens[:, LAST], axis=1)
  left, right = (tf.roll(aliens, shift, axis=2) for shift in (-1, 1))
  sideways = tf.where((step < 0)[:, None, None], left, right)
  moved = tf.where(at_edge[:, None, None], tf.roll(aliens, 1, axis=1), sideways)
  count = tf.reduce_sum(game.to_int(aliens), axis=[1, 2])
  period = tf.minimum(count, state.move_period)
  state = state._replace(
    aliens=tf.where(moves[:, None, None], moved, aliens),
    step=tf.where(sinks, -step, step),
    move_wait=tf.where(moves, period, state.move_wait) - 1,
  )
  return state, landed


def _find_shooter(aliens: tf.Tensor, x: tf.Tensor) -> tf.Tensor:
  """Returns the lowest alien of the column closest to `x`.

  bool `[B, 10, 10]`. Of two equally close columns, the left one counts.
  """
  order = tf.abs(_COLUMNS - x[:, None]) * SIZE + _COLUMNS  # [B, 10]
  columns = tf.reduce_any(aliens, axis=1)  # [B, 10]
  first = tf.reduce_min(tf.where(columns, order, SIZE**2), axis=1)
  here = aliens & tf.equal(order, first[:, None])[:, None]
  row = tf.reduce_max(tf.where(here, _ROWS, -1), axis=[1, 2])
  return here & tf.equal(row[:, None, None], _ROWS)
