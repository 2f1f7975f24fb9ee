"""MinAtar's Breakout in TensorFlow: break bricks with a ball."""

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from repertory.environments.tensor.minatar import game
from repertory.environments.tensor.minatar.game import LAST, SIZE

_WALL_ROWS = (1, 2, 3)


class BreakoutState(NamedTuple):
  """State of the game, `[B, ...]`."""

  x: game.Leaf  # Column of the ball, int32.
  y: game.Leaf  # Row of the ball, int32.
  step_x: game.Leaf  # Horizontal direction, 1 right or -1 left, int32.
  step_y: game.Leaf  # Vertical direction, 1 down or -1 up, int32.
  trail_x: game.Leaf  # Column of the ball one step before, int32.
  trail_y: game.Leaf  # Row of the ball one step before, int32.
  paddle: game.Leaf  # Column of the paddle, in the last row; int32.
  bricks: game.Leaf  # Bricks in rows 1 to 3, bool `[B, 3, 10]`.
  in_wall: game.Leaf  # Whether the ball's last field had a brick, bool.


class Breakout(game.Game):
  """Move the paddle to return the ball, which breaks bricks.

  The ball flies along diagonals. Reward: 1 for each brick. When all are gone, a
  new wall appears as soon as the ball is at the paddle's row. The game is over
  when the ball passes the paddle.

  Channels: paddle, ball, the ball's last position, bricks.
  """

  num_channels = 4
  useful_moves = (game.STAY, game.LEFT, game.RIGHT)
  draws_at_start = 1

  def _begin(self, draws: tf.Tensor) -> BreakoutState:
    from_left = draws[:, 0] < 0.5
    x = tf.where(from_left, 0, LAST)
    return BreakoutState(
      x,
      y=3,
      step_x=tf.where(from_left, 1, -1),
      step_y=1,
      trail_x=x,
      trail_y=3,
      paddle=4,
      bricks=np.ones((len(_WALL_ROWS), SIZE), np.bool_),
      in_wall=False,
    )

  def _play(
    self, state: BreakoutState, move: tf.Tensor, draws: tf.Tensor
  ) -> tuple[BreakoutState, tf.Tensor, tf.Tensor]:
    del draws
    paddle = game.move_sideways(state.paddle, move)
    free_x = state.x + state.step_x
    x = tf.clip_by_value(free_x, 0, LAST)
    at_side = tf.not_equal(x, free_x)
    free_y = state.y + state.step_y
    at_top = free_y < 0
    y = tf.maximum(free_y, 0)
    # Of adjacent bricks in the ball's path only the first one breaks.
    row = tf.equal(y[:, None, None], tf.constant(_WALL_ROWS)[:, None])
    here = row & tf.equal(x[:, None, None], tf.range(SIZE))  # [B, 3, 10]
    in_wall = tf.reduce_any(state.bricks & here, axis=[1, 2])
    breaks = in_wall & ~state.in_wall
    bricks = state.bricks & ~(here & breaks[:, None, None])
    at_bottom = tf.equal(y, LAST)
    cleared = ~tf.reduce_any(bricks, axis=[1, 2])
    bricks |= (at_bottom & cleared)[:, None, None]
    # The ball bounces onwards if it came from straight above, and back if it
    # came from the side.
    on_paddle = at_bottom & tf.equal(state.x, paddle)
    on_edge = at_bottom & ~on_paddle & tf.equal(x, paddle)
    bounces = breaks | on_paddle | on_edge
    state = BreakoutState(
      x,
      tf.where(bounces, state.y, y),
      step_x=tf.where(
        tf.not_equal(at_side, on_edge), -state.step_x, state.step_x
      ),
      step_y=tf.where(bounces | at_top, -state.step_y, state.step_y),
      trail_x=state.x,
      trail_y=state.y,
      paddle=paddle,
      bricks=bricks,
      in_wall=in_wall,
    )
    return state, breaks, at_bottom & ~bounces

  def _show(self, state: BreakoutState) -> list[tf.Tensor]:
    above, below = _WALL_ROWS[0], LAST - _WALL_ROWS[-1]
    return [
      game.mark(state.paddle, tf.fill(state.paddle.shape, LAST)),
      game.mark(state.x, state.y),
      game.mark(state.trail_x, state.trail_y),
      tf.pad(state.bricks, [[0, 0], [above, below], [0, 0]]),
    ]
