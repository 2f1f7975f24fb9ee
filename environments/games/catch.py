"""Catch: a minimal game with delayed reward, in pure NumPy.

After bsuite's `catch` (https://github.com/google-deepmind/bsuite).
"""

from typing import Any

import numpy as np
from dm_env import specs

from repertory.environments import rendering
from repertory.environments.games import game
from repertory.environments.values import argument_checks


class Catch(game.HostGame):
  """Move a paddle to catch a falling ball.

  The ball starts in a random column of the top row and falls one row per step;
  the paddle starts in the middle of the bottom row. An episode has `rows - 1`
  steps. Only the last is rewarded: +1 if the ball is caught, -1 if it is
  missed. On a board of at least `columns // 2 + 1` rows every ball can be
  caught.

  Observation: float32 board `[rows, columns]`, 1 at the ball and at the paddle.
  Actions: 0 left, 1 stay, 2 right; walls stop the paddle.
  Rendering: the board, white on black, uint8 `[rows, columns, 3]`.
  """

  render_fps = 5

  def __init__(self, rows: int = 10, columns: int = 5, seed: int = 0):
    """Creates the board.

    Args:
      rows: Height, at least 2: one for the ball, one for the paddle.
      columns: Width, at least 1.
      seed: Seed of the balls' columns, at least 0.

    Raises:
      ValueError: If an argument is not an integer, or is too small.
    """
    self._rows = argument_checks.check_integer('rows', rows, 2)
    self._columns = argument_checks.check_integer('columns', columns, 1)
    super().__init__(seed)
    self._ball_row = 0
    self._ball_column = 0
    self._paddle_column = 0

  def observation_spec(self) -> specs.BoundedArray:
    shape = (self._rows, self._columns)
    return specs.BoundedArray(shape, np.float32, 0, 1, name='board')

  def action_spec(self) -> specs.DiscreteArray:
    return specs.DiscreteArray(3, np.int32, name='move')

  def render(self) -> np.ndarray:
    return rendering.drawing.draw_board(self._observe())

  def _start(self) -> None:
    self._ball_row = 0
    self._ball_column = int(self._random.integers(self._columns))
    self._paddle_column = self._columns // 2

  def _advance(self, action: Any) -> tuple[float, bool, bool]:
    move = game.check_choice(action, 3, '0 (left), 1 (stay) or 2 (right)')
    column = self._paddle_column + move - 1
    self._paddle_column = min(max(column, 0), self._columns - 1)
    self._ball_row += 1
    if self._ball_row < self._rows - 1:
      return 0, False, False
    caught = self._paddle_column == self._ball_column
    return 1 if caught else -1, True, False

  def _observe(self) -> np.ndarray:
    board = np.zeros((self._rows, self._columns), np.float32)
    board[self._ball_row, self._ball_column] = 1
    board[self._rows - 1, self._paddle_column] = 1
    return board
