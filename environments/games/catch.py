"""Catch: a minimal game with delayed reward, in pure NumPy.

After bsuite's `catch` (https://github.com/google-deepmind/bsuite).
"""

import operator
from typing import Any

import dm_env
import numpy as np
from dm_env import specs

from repertory.environments.rendering import drawing
from repertory.environments.values import argument_checks


class Catch(dm_env.Environment):
  """Move a paddle to catch a falling ball.

  The ball starts in a random column of the top row and falls one row per step;
  the paddle starts in the middle of the bottom row. An episode has `rows - 1`
  steps. Only the last is rewarded: +1 if the ball is caught, -1 if it is
  missed. On a board of at least `columns // 2 + 1` rows every ball can be
  caught.

  Observation: float32 board `[rows, columns]`, 1 at the ball and at the paddle.
  Actions: 0 left, 1 stay, 2 right; walls stop the paddle.
  Rendering: the board, white on black.
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
    seed = argument_checks.check_integer('seed', seed, 0)
    self._random = np.random.default_rng(seed)
    self._ball_row = 0
    self._ball_column = 0
    self._paddle_column = 0
    self._ended = True

  def reset(self) -> dm_env.TimeStep:
    """Drops a new ball."""
    self._ball_row = 0
    self._ball_column = int(self._random.integers(self._columns))
    self._paddle_column = self._columns // 2
    self._ended = False
    return dm_env.restart(self._board())

  def step(self, action: Any) -> dm_env.TimeStep:
    """Moves the paddle, then lets the ball fall by one row.

    Args:
      action: Integer scalar: 0 left, 1 stay, 2 right.

    Raises:
      ValueError: If the action is not one of these.
    """
    if self._ended:
      return self.reset()
    self._move(action)
    self._ball_row += 1
    self._ended = self._ball_row == self._rows - 1
    if not self._ended:
      return dm_env.TimeStep(
        dm_env.StepType.MID, np.float32(0), np.float32(1), self._board()
      )
    caught = self._paddle_column == self._ball_column
    return dm_env.TimeStep(
      dm_env.StepType.LAST,
      np.float32(1 if caught else -1),
      np.float32(0),
      self._board(),
    )

  def observation_spec(self) -> specs.BoundedArray:
    """Returns the spec of the board, `[rows, columns]`."""
    shape = (self._rows, self._columns)
    return specs.BoundedArray(shape, np.float32, 0, 1, name='board')

  def action_spec(self) -> specs.DiscreteArray:
    """Returns the spec of the three moves."""
    return specs.DiscreteArray(3, np.int32, name='move')

  def reward_spec(self) -> specs.BoundedArray:
    """Returns the spec of the reward, -1, 0 or 1."""
    return specs.BoundedArray((), np.float32, -1, 1, name='reward')

  def discount_spec(self) -> specs.BoundedArray:
    """Returns the spec of the discount, 0 at the end and 1 before it."""
    return specs.BoundedArray((), np.float32, 0, 1, name='discount')

  def render(self) -> np.ndarray:
    """Renders the board, uint8 `[rows, columns, 3]`."""
    return drawing.draw_board(self._board())

  def _move(self, action: Any) -> None:
    try:
      move = operator.index(action)
    except TypeError:
      move = -1
    if move not in (0, 1, 2):
      raise ValueError(
        f'`action`: expected 0 (left), 1 (stay) or 2 (right), got {action!r}.'
      )
    column = self._paddle_column + move - 1
    self._paddle_column = min(max(column, 0), self._columns - 1)

  def _board(self) -> np.ndarray:
    board = np.zeros((self._rows, self._columns), np.float32)
    board[self._ball_row, self._ball_column] = 1
    board[self._rows - 1, self._paddle_column] = 1
    return board
