"""Reach: a minimal visuomotor control task, in pure NumPy.

After the grasping task of https://arxiv.org/abs/1806.10293: an image, a
continuous action, and a sparse reward for success.
"""

from typing import Any

import numpy as np
from dm_env import specs

from repertory.environments import rendering
from repertory.environments.games import game
from repertory.environments.values import argument_checks

_PIXELS = 10
# In units of the square's width.
_STEP = 0.15
_NEAR = 0.1


class Reach(game.HostGame):
  """Move a hand onto a goal in a unit square.

  An episode ends with a reward of 1 when their distance is at most a tenth of
  the square's width. All other rewards are 0. After `max_steps` the episode is
  truncated, with discount 1.

  Observation: uint8 image `[10, 10, 2]`, the hand and the goal, each as a point
  whose intensity is spread over the four pixels around it.
  Actions: float32 `[2]` in [−1, 1]: the move down and to the right, in steps of
  0.15 of the width; walls stop the hand.
  Rendering: the hand in white and the goal in gray, uint8 `[10, 10, 3]`.
  """

  render_fps = 5

  def __init__(self, max_steps: int = 20, seed: int = 0):
    """Creates the square.

    Args:
      max_steps: Steps after which an episode is truncated, at least 1.
      seed: Seed of the initial positions, at least 0.

    Raises:
      ValueError: If an argument is not an integer, or is too small.
    """
    self._max_steps = argument_checks.check_integer('max_steps', max_steps, 1)
    super().__init__(seed)
    self._hand = np.zeros(2)
    self._goal = np.zeros(2)
    self._num_steps = 0

  def observation_spec(self) -> specs.BoundedArray:
    shape = (_PIXELS, _PIXELS, 2)
    return specs.BoundedArray(shape, np.uint8, 0, 255, name='image')

  def action_spec(self) -> specs.BoundedArray:
    return specs.BoundedArray((2,), np.float32, -1, 1, name='move')

  def reward_spec(self) -> specs.BoundedArray:
    return specs.BoundedArray((), np.float32, 0, 1, name='reward')

  def render(self) -> np.ndarray:
    hand, goal = np.moveaxis(self._observe() / 255, -1, 0)
    return rendering.drawing.draw_board(np.maximum(hand, goal / 2))

  def _start(self) -> None:
    while True:  # Until the positions are not close to each other.
      self._hand, self._goal = self._random.uniform(size=(2, 2))
      if not self._is_near():
        break
    self._num_steps = 0

  def _advance(self, action: Any) -> tuple[float, bool, bool]:
    move = np.asarray(action)
    is_number = np.issubdtype(move.dtype, np.floating) and move.shape == (2,)
    if not is_number or not np.all(np.abs(move) <= 1):
      raise ValueError(
        f'`action`: expected two numbers in [-1, 1], got {action!r}.'
      )
    self._hand = np.clip(self._hand + _STEP * move, 0, 1)
    self._num_steps += 1
    is_near = self._is_near()
    return is_near, is_near, self._num_steps == self._max_steps

  def _is_near(self) -> bool:
    return bool(np.linalg.norm(self._hand - self._goal) <= _NEAR)

  def _observe(self) -> np.ndarray:
    points = [_draw_point(place) for place in (self._hand, self._goal)]
    return np.rint(255 * np.stack(points, axis=-1)).astype(np.uint8)


def _draw_point(place: np.ndarray) -> np.ndarray:
  """Returns an image of a point, `[10, 10]`, whose pixels sum to 1."""
  away = np.abs(place[:, None] * (_PIXELS - 1) - np.arange(_PIXELS))  # [2, 10]
  rows, columns = np.maximum(1 - away, 0)
  return np.outer(rows, columns)
