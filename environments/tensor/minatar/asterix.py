"""MinAtar's Asterix in TensorFlow: collect treasure, avoid enemies."""

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from repertory.environments.tensor.minatar import game
from repertory.environments.tensor.minatar.game import LAST, SIZE

# Each of rows 1 to 8 holds at most one enemy or treasure.
_NUM_LANES = 8
_LANES = tuple(range(1, 1 + _NUM_LANES))
_SPAWN_PERIOD = 10
_MOVE_PERIOD = 5
_RAMP_PERIOD = 100


class Lanes(NamedTuple):
  """Enemies and treasures in the lanes, `[B, 8]`."""

  x: game.Leaf  # Column, int32.
  # Direction, 1 right or -1 left; 0 if the lane is empty. int32.
  step: game.Leaf
  gold: game.Leaf  # Whether it is treasure, bool.


class AsterixState(NamedTuple):
  """State of the game, int32 `[B]` except for the lanes."""

  x: game.Leaf  # Column of the player.
  y: game.Leaf  # Row of the player.
  lanes: Lanes  # Enemies and treasures.
  spawn_wait: game.Leaf  # Steps until the next arrival.
  move_wait: game.Leaf  # Steps until everything in the lanes moves.
  spawn_period: game.Leaf  # Steps between two arrivals.
  move_period: game.Leaf  # Steps between two moves.
  ramp_wait: game.Leaf  # Steps until the difficulty increases, minus two.
  ramps: game.Leaf  # Number of difficulty increases.


class Asterix(game.Game):
  """Move in four directions, to treasure and away from enemies.

  Both come from the sides, faster and more often with time. Reward: 1 for each
  treasure. The game is over when an enemy touches the player.

  Channels: player, enemy, the field behind enemy or treasure, treasure.
  """

  num_channels = 4
  useful_moves = (game.STAY, game.LEFT, game.UP, game.RIGHT, game.DOWN)
  # Direction, kind and lane of an arrival.
  draws_per_step = 3

  def _begin(self, draws: tf.Tensor) -> AsterixState:
    del draws
    empty = np.zeros(_NUM_LANES, np.int32)
    return AsterixState(
      x=5,
      y=5,
      lanes=Lanes(empty, empty, empty > 0),
      spawn_wait=_SPAWN_PERIOD,
      move_wait=_MOVE_PERIOD,
      spawn_period=_SPAWN_PERIOD,
      move_period=_MOVE_PERIOD,
      ramp_wait=_RAMP_PERIOD,
      ramps=0,
    )

  def _play(
    self, state: AsterixState, move: tf.Tensor, draws: tf.Tensor
  ) -> tuple[AsterixState, tf.Tensor, tf.Tensor]:
    spawns = tf.equal(state.spawn_wait, 0)
    lanes = _spawn(state.lanes, spawns, draws)
    x = game.move_sideways(state.x, move)
    y = game.move_vertically(state.y, move, _LANES[0], _LANES[-1])
    # First the player's own collisions, then those with moving things.
    lanes, found_before, hit_before = _meet(lanes, x, y)
    moves = tf.equal(state.move_wait, 0)
    moved = tf.where(moves[:, None], lanes.x + lanes.step, lanes.x)
    inside = tf.equal(moved, tf.clip_by_value(moved, 0, LAST))
    lanes = lanes._replace(x=moved, step=tf.where(inside, lanes.step, 0))
    lanes, found_after, hit_after = _meet(lanes, x, y)
    state = state._replace(
      x=x,
      y=y,
      lanes=lanes,
      spawn_wait=game.count_down(state.spawn_wait, spawns, state.spawn_period),
      move_wait=game.count_down(state.move_wait, moves, state.move_period),
    )
    if self._ramping:
      ramps = game.can_speed_up(state, 1)
      due = ramps & (state.ramp_wait < 0)
      wait = state.ramp_wait - game.to_int(ramps)
      state = state._replace(ramp_wait=tf.where(due, _RAMP_PERIOD, wait))
      state = game.speed_up(state, due, 1)
    reward = game.to_int(found_before) + game.to_int(found_after)
    return state, reward, hit_before | hit_after

  def _show(self, state: AsterixState) -> list[tf.Tensor]:
    lanes = state.lanes
    present = tf.not_equal(lanes.step, 0)

    def mark(x: tf.Tensor, shown: tf.Tensor) -> tf.Tensor:
      boards = tf.where(shown[..., None], tf.one_hot(x, SIZE), 0.0)
      return game.pad_lanes(boards)  # [B, 10, 10]

    return [
      game.mark(state.x, state.y),
      mark(lanes.x, present & ~lanes.gold),
      mark(lanes.x - lanes.step, present),
      mark(lanes.x, present & lanes.gold),
    ]


def _spawn(lanes: Lanes, spawns: tf.Tensor, draws: tf.Tensor) -> Lanes:
  """Adds an arrival to a free lane, if a lane is free."""
  free = tf.equal(lanes.step, 0)
  place = tf.cumsum(game.to_int(free), axis=1)  # [B, 8]: from 1 on.
  chosen = game.pick(draws[:, 2], place[:, -1])
  here = free & tf.equal(place - 1, chosen[:, None]) & spawns[:, None]
  rightward = draws[:, :1] < 1 / 2
  return Lanes(
    tf.where(here, tf.where(rightward, 0, LAST), lanes.x),
    tf.where(here, tf.where(rightward, 1, -1), lanes.step),
    tf.where(here, draws[:, 1:2] < 1 / 3, lanes.gold),
  )


def _meet(
  lanes: Lanes, x: tf.Tensor, y: tf.Tensor
) -> tuple[Lanes, tf.Tensor, tf.Tensor]:
  """Collects treasure at the player's position.

  Returns:
    The remaining lanes, whether there was treasure, and whether there is an
    enemy.
  """
  here = tf.equal(y[:, None], tf.constant(_LANES))
  here &= tf.equal(lanes.x, x[:, None]) & tf.not_equal(lanes.step, 0)
  found = here & lanes.gold
  lanes = lanes._replace(step=tf.where(found, 0, lanes.step))
  hit = tf.reduce_any(here & ~lanes.gold, axis=1)
  return lanes, tf.reduce_any(found, axis=1), hit
