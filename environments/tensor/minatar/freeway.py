"""MinAtar's Freeway in TensorFlow: cross eight lanes of cars."""

from typing import NamedTuple

import tensorflow as tf

from repertory.environments.tensor.minatar import game
from repertory.environments.tensor.minatar.game import LAST, SIZE

# One car per lane, on rows 1 to 8.
_NUM_LANES = 8
_COLUMN = 4
_SLOWEST = 5
_PAUSE = 3
_TIME_LIMIT = 2500


class FreewayState(NamedTuple):
  """State of the game, int32 `[B, ...]`."""

  y: game.Leaf  # Row of the chicken, `[B]`.
  pause: game.Leaf  # Steps until it can move again, `[B]`.
  time: game.Leaf  # Remaining steps, `[B]`.
  x: game.Leaf  # Columns of the cars, `[B, 8]`.
  wait: game.Leaf  # Steps until each car moves, `[B, 8]`.
  # Steps between a car's moves, from 1 to 5; negative if it drives to the left.
  # `[B, 8]`.
  pace: game.Leaf


class Freeway(game.Game):
  """Lead the chicken across the street repeatedly.

  It rests after each step up or down. Reward: 1 for each crossing, after which
  the cars change their speeds. A car that hits the chicken sends it back to the
  start. The game is over after 2,501 steps.

  Channels: chicken, car, and five for the field behind a car, by speed, the
  fastest first.
  """

  num_channels = 2 + _SLOWEST
  useful_moves = (game.STAY, game.UP, game.DOWN)
  draws_at_start = _NUM_LANES
  draws_per_step = _NUM_LANES

  def _begin(self, draws: tf.Tensor) -> FreewayState:
    pace = _draw_paces(draws)
    return FreewayState(
      y=LAST,
      pause=_PAUSE,
      time=_TIME_LIMIT,
      x=tf.zeros_like(pace),
      wait=tf.abs(pace),
      pace=pace,
    )

  def _play(
    self, state: FreewayState, move: tf.Tensor, draws: tf.Tensor
  ) -> tuple[FreewayState, tf.Tensor, tf.Tensor]:
    move = tf.where(tf.equal(state.pause, 0), move, game.STAY)
    walks = tf.equal(move, game.UP) | tf.equal(move, game.DOWN)
    pause = tf.where(walks, _PAUSE, state.pause)
    y = game.move_vertically(state.y, move)
    crossed = tf.equal(y, 0)
    y = tf.where(crossed, LAST, y)

    fresh = _draw_paces(draws)  # [B, 8]
    pace = tf.where(crossed[:, None], fresh, state.pace)
    wait = tf.where(crossed[:, None], tf.abs(fresh), state.wait)
    drives = tf.equal(wait, 0)  # [B, 8]
    x = tf.where(drives, _wrap(state.x + tf.sign(pace)), state.x)
    wait = tf.where(drives, tf.abs(pace), wait - 1)
    # A car that moves on hits the chicken behind it, too.
    over_column = tf.equal(state.x, _COLUMN) | tf.equal(x, _COLUMN)
    in_lane = tf.equal(y[:, None], tf.range(1, 1 + _NUM_LANES))
    hit = tf.reduce_any(over_column & in_lane, axis=1)
    time = state.time - 1
    state = FreewayState(
      tf.where(hit, LAST, y),
      pause=tf.maximum(pause - 1, 0),
      time=time,
      x=x,
      wait=wait,
      pace=pace,
    )
    return state, crossed, time < 0

  def _show(self, state: FreewayState) -> list[tf.Tensor]:
    behind = tf.one_hot(_wrap(state.x - tf.sign(state.pace)), SIZE)
    pace = tf.abs(state.pace)[..., None]  # [B, 8, 1]
    column = tf.fill(state.y.shape, _COLUMN)
    return [
      game.mark(column, state.y),
      game.pad_lanes(tf.one_hot(state.x, SIZE)),
      *(
        game.pad_lanes(tf.where(tf.equal(pace, speed), behind, 0.0))
        for speed in range(1, 1 + _SLOWEST)
      ),
    ]


def _draw_paces(draws: tf.Tensor) -> tf.Tensor:
  """Maps each draw to a speed: five to the right, then five to the left."""
  number = game.pick(draws, 2 * _SLOWEST)
  return tf.where(number < _SLOWEST, number + 1, _SLOWEST - 1 - number)


def _wrap(x: tf.Tensor) -> tf.Tensor:
  return tf.math.floormod(x, SIZE)
