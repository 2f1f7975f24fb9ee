"""Catch in TensorFlow: see `environments/games/catch.py`."""

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from repertory.components.runtime import random_streams
from repertory.environments.games import catch
from repertory.environments.rendering import drawing
from repertory.environments.tensor import environment


class CatchCore(NamedTuple):
  """Positions, int32 `[B]` each."""

  ball_row: tf.Tensor
  ball_column: tf.Tensor
  paddle_column: tf.Tensor


class TensorCatch(environment.DerivedEnvironment):
  """Move a paddle to catch a falling ball.

  Rules, specs, rewards and observations are those of
  `environments.games.catch.Catch`; the random columns of the balls differ.
  """

  render_fps = 5

  def __init__(self, rows: int = 10, columns: int = 5):
    """Sets the size of the board, as `games.catch.Catch` does."""
    super().__init__(catch.Catch(rows, columns))
    self._rows, self._columns = rows, columns

  def start(
    self, counters: tf.Tensor, before: CatchCore | None
  ) -> tuple[CatchCore, tf.Tensor]:
    del before
    uniform, _, counters = random_streams.next_uniforms(counters)  # [B]
    column = tf.cast(uniform * self._columns, tf.int32)
    middle = tf.fill(column.shape, self._columns // 2)
    return CatchCore(tf.zeros_like(column), column, middle), counters

  def advance(
    self, core: CatchCore, action: tf.Tensor, counters: tf.Tensor
  ) -> environment.Advance:
    row = core.ball_row + 1
    paddle = tf.clip_by_value(
      core.paddle_column + action - 1, 0, self._columns - 1
    )
    ended = tf.equal(row, self._rows - 1)
    reward = tf.where(tf.equal(paddle, core.ball_column), 1.0, -1.0)
    return environment.Advance(
      CatchCore(row, core.ball_column, paddle),
      tf.where(ended, reward, 0.0),
      terminated=ended,
      truncated=tf.zeros_like(ended),
      counters=counters,
    )

  def observe(self, core: CatchCore) -> tf.Tensor:
    ball = core.ball_row * self._columns + core.ball_column
    paddle = (self._rows - 1) * self._columns + core.paddle_column
    size = self._rows * self._columns
    board = tf.maximum(tf.one_hot(ball, size), tf.one_hot(paddle, size))
    return tf.reshape(board, [-1, self._rows, self._columns])

  def render(self, core: CatchCore) -> np.ndarray:
    return drawing.draw_board(self.observe(core)[0].numpy())
