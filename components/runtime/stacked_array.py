"""Spec of stacked frames, which agents and environments share."""

from typing import Any

from dm_env import specs


class StackedArray(specs.BoundedArray):
  """Spec of the last T frames of an image, along the last axis, newest last.

  Replay tables store each frame once.
  """

  __slots__ = ('_num_frames',)

  def __init__(
    self,
    shape: Any,
    dtype: Any,
    minimum: Any,
    maximum: Any,
    name: str | None = None,
    num_frames: int = 1,
  ):
    """Takes the arguments of `BoundedArray`, and T, which divides the axis."""
    super().__init__(shape, dtype, minimum, maximum, name)
    self._num_frames = num_frames

  @property
  def num_frames(self) -> int:
    """T, number of frames."""
    return self._num_frames

  def __reduce__(self) -> tuple:
    _, arguments = super().__reduce__()
    return type(self), (*arguments, self._num_frames)
