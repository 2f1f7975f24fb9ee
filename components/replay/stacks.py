"""Frame stacks in replay tables, which hold each frame once."""

from collections.abc import Callable, Iterable, Sequence
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
  """Splits the stacks of consecutive steps into frames, each stored once.

  Stacks are compared with those of the step before, so that any contents are
  stored correctly.
  """

  def __init__(self, num_frames: int, store: Callable[[np.ndarray], Any]):
    """Takes T and a function that stores a frame and returns its reference."""
    self._num_frames = num_frames
    self._store = store
    # Frames of each slot's latest stack, and their references.
    self._latest: list[tuple[list[np.ndarray], list[Any]]] = []

  def split(self, stacks: np.ndarray) -> list[list[Any]]:
    """Returns the references to the T frames of stacks `[B, ..., C]`."""
    latest = self._latest or [([], [])] * len(stacks)
    self._latest = [
      self._split(stack, *before) for stack, before in zip(stacks, latest)
    ]
    return [references for _, references in self._latest]

  def _split(
    self, stack: np.ndarray, before: list[np.ndarray], references: list[Any]
  ) -> tuple[list[np.ndarray], list[Any]]:
    frames = _split(stack, self._num_frames)
    *older, newest = frames
    if before and all(map(np.array_equal, older, before[1:])):
      return [*before[1:], newest], [*references[1:], self._store(newest)]
    # An episode starts, usually with equal frames.
    references = []
    for k, frame in enumerate(frames):
      is_repeated = k and np.array_equal(frame, frames[k - 1])
      references.append(references[-1] if is_repeated else self._store(frame))
    return frames, references


def _split(stack: np.ndarray, num_frames: int) -> list[np.ndarray]:
  return [np.array(part) for part in np.split(stack, num_frames, axis=-1)]
