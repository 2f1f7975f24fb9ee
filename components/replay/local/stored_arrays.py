"""Large leaves as tables store them: stacks of frames, and compressed arrays.

By LZ4, frames of games take a tenth of their size, at about 1 µs per kB to
compress and a third of that to decompress.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Any

import lz4.block
import numpy as np

# Arrays that shrink less are not worth decompressing.
_MAX_RATIO = 0.9


class CompressedArray:
  """Immutable array in compressed form; NumPy decompresses it on use."""

  __slots__ = ('data', 'dtype', 'shape')

  def __init__(self, data, shape: tuple[int, ...], dtype: np.dtype):
    """Takes compressed bytes."""
    self.data = data
    self.shape = shape
    self.dtype = dtype

  def __array__(self, dtype=None, copy=None) -> np.ndarray:
    size = math.prod(self.shape) * self.dtype.itemsize
    data = lz4.block.decompress(self.data, uncompressed_size=size)
    array = np.frombuffer(data, self.dtype).reshape(self.shape)
    return array if dtype is None else array.astype(dtype)


def compress(array: np.ndarray) -> np.ndarray | CompressedArray:
  """Compresses an array; returns itself if that saves too little."""
  data = lz4.block.compress(np.ascontiguousarray(array), store_size=False)
  if len(data) > _MAX_RATIO * array.nbytes:
    return array
  return CompressedArray(data, array.shape, array.dtype)


def stored_bytes(array: np.ndarray | CompressedArray) -> memoryview:
  """Returns the bytes of an array as it is stored."""
  if isinstance(array, CompressedArray):
    return memoryview(array.data)
  return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data


def from_stored(
  data: memoryview, shape: tuple[int, ...], dtype: np.dtype
) -> np.ndarray | CompressedArray:
  """Returns the array of stored bytes, which is compressed if they are fewer.

  Raises a ValueError if there are too many.
  """
  size = math.prod(shape) * dtype.itemsize
  if len(data) == size:
    return np.frombuffer(data, dtype).reshape(shape)
  if len(data) > size:
    raise ValueError(
      f'An array of {size} bytes must not be stored in {len(data)}.'
    )
  return CompressedArray(data, shape, dtype)


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
  """Returns the frames of a stack; a whole array in place of each of them."""
  return stored.frames if isinstance(stored, Stack) else [stored] * num_frames


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
