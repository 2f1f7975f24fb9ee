"""Layouts of action masks, which agents and environments share."""

from collections.abc import Sequence

import numpy as np
from dm_env import specs

# Key of the mask in observations.
NAME = 'action_mask'


def layouts_of(
  shape: Sequence[int], sizes: Sequence[int]
) -> dict[tuple[int, ...], bool]:
  """Returns the shapes that masks of an action may have.

  For each it is whether the mask is of the combinations of all integers, and
  not of the choices of each integer.

  Args:
    shape: Shape of the action.
    sizes: Number of choices of each of its integers.
  """
  layouts: dict[tuple[int, ...], bool] = {(sum(sizes),): False}
  if len(sizes) > 1:
    layouts[tuple(sizes)] = True
  if len(set(sizes)) == 1:
    layouts[(*shape, sizes[0])] = False
  return layouts


def sizes_of(spec: specs.BoundedArray) -> list[int]:
  """Returns the numbers of choices of the integers of an action's leaf."""
  minimum, maximum = (
    np.broadcast_to(bound, spec.shape).ravel().astype(np.int64)
    for bound in (spec.minimum, spec.maximum)
  )
  return (maximum - minimum + 1).tolist()


class LeafMasks:
  """Masks of a leaf of actions, in NumPy."""

  def __init__(self, spec: specs.BoundedArray, shape: Sequence[int]):
    """Takes the spec of the leaf, and the shape of its masks."""
    sizes = sizes_of(spec)
    minimum = np.broadcast_to(spec.minimum, spec.shape).ravel()
    self._minimum = minimum.astype(np.int64)
    self._is_combined = layouts_of(spec.shape, sizes)[tuple(shape)]
    self._starts = np.cumsum([0, *sizes[:-1]])  # Of the integers' masks.
    self._strides = np.cumprod([1, *sizes[:0:-1]])[::-1]

  def has_choice(self, masks: np.ndarray) -> np.ndarray:
    """Returns whether masks `[B, ...]` allow each integer a choice."""
    flat = masks.reshape(len(masks), -1)
    if self._is_combined:
      return flat.any(1)
    return np.logical_or.reduceat(flat, self._starts, axis=1).all(1)

  def is_allowed(self, masks: np.ndarray, actions: np.ndarray) -> np.ndarray:
    """Returns whether masks `[B, ...]` allow actions `[B, ...]`."""
    steps = actions.reshape(len(actions), -1) - self._minimum  # [B, K]
    indices = self._starts + steps
    if self._is_combined:
      indices = (steps * self._strides).sum(1, keepdims=True)
    flat = masks.reshape(len(masks), -1)
    return np.take_along_axis(flat, indices, 1).all(1)
