"""Frame stacks in local tables, which hold each frame once."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np


class Stack:
  """Immutable array of frames along the last axis; NumPy joins them on use."""

  __slots__ = ('frames',)

  def __init__(self, frames: Sequence[Any]):
    """Takes arrays, perhaps compressed ones, the newest last."""
    self.frames = tuple(frames)

  def __array__(self, dtype=None, copy=None) -> np.ndarray:
    return np.concatenate(self.frames, axis=-1, dtype=dtype)


def as_objects(values: Iterable[Any]) -> np.ndarray:
  """Returns an array of objects, which NumPy does not look into."""
  values = list(values)
  objects = np.empty([len(values)], object)
  for k, value in enumerate(values):
    objects[k] = value
  return objects


def frames_of(stored: Any, num_frames: int) -> Sequence[Any]:
  """Returns the frames of a stored stack, which may be whole."""
  if isinstance(stored, Stack):
    return stored.frames
  return _split(np.asarray(stored), num_frames)


def read(stored: Any, row: np.ndarray) -> None:
  """Copies a stored array or stack into `row`."""
  if isinstance(stored, Stack):
    np.concatenate(stored.frames, axis=-1, out=row)
  else:
    row[...] = stored


class Splitter:
  """Converts arrays of consecutive steps to stacks that share frames.

  Arrays are compared with those of the step before, so that any contents are
  stored correctly.
  """

  def __init__(self, num_frames: int):
    self._num_frames = num_frames
    self._latest: list[Stack] = []  # Of each slot.

  def split(self, arrays: np.ndarray) -> list[Stack]:
    """Returns stacks of T frames of arrays `[B, ..., C]`."""
    latest = self._latest or [Stack([])] * len(arrays)
    self._latest = list(map(self._split, arrays, latest))
    return self._latest

  def _split(self, array: np.ndarray, before: Stack) -> Stack:
    *older, newest = _split(array, self._num_frames)
    shared = before.frames[1:]
    if before.frames and all(map(np.array_equal, older, shared)):
      older = shared
    return Stack([*older, newest])


def _split(array: np.ndarray, num_frames: int) -> list[np.ndarray]:
  return [np.array(part) for part in np.split(array, num_frames, axis=-1)]
