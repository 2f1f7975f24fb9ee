"""Leaves of a batch: checks and casts between source and policy."""

from typing import Any

import numpy as np
from dm_env import specs

from repertory.environments.values import casting


class EnvironmentContractError(ValueError):
  """Raised if an environment violates its specs or dm_env's contract."""


class NotFiniteError(FloatingPointError):
  """Raised if the action of `slot` is NaN or infinite."""

  def __init__(self, slot: int, message: str):
    super().__init__(message)
    self.slot = slot


class IntegerRange:
  """Bounds of an integer leaf `[B, ...]`."""

  def __init__(self, path: str, spec: specs.BoundedArray, row: str) -> None:
    """Reads the bounds; messages name the leaf `path`, and a row `row`."""
    self._path = path
    self._row = row
    self._num_values = 0
    if isinstance(spec, specs.DiscreteArray):
      self._num_values = spec.num_values
    self._minimum, self._maximum = spec.minimum, spec.maximum

  def check(self, array: np.ndarray) -> None:
    """Raises a ValueError that names the row if an integer is out of bounds."""
    if self._num_values:
      # Viewed as unsigned, negative numbers are large.
      unsigned = array.view(f'u{array.itemsize}')  # [B]
      if np.maximum.reduce(unsigned) < self._num_values:
        return
    outside = (array < self._minimum) | (array > self._maximum)
    if outside.any():
      row = int(np.argwhere(outside)[0, 0])
      raise ValueError(
        f'{self._path}: expected integers from {self._minimum.tolist()} to '
        f'{self._maximum.tolist()}, found '
        f'{casting.shorten(array[row].tolist())} in {self._row} {row}'
      )


def find_range(
  path: str, spec: specs.Array, row: str = 'slot'
) -> IntegerRange | None:
  """Returns the range to check; None for floats and unbounded integers."""
  if spec.dtype.kind not in 'iu' or not isinstance(spec, specs.BoundedArray):
    return None
  limits = np.iinfo(spec.dtype)
  if np.all(spec.minimum == limits.min) and np.all(spec.maximum == limits.max):
    return None
  return IntegerRange(path, spec, row)


class ObservationColumn:
  """One observation leaf, cast to the dtype of the batch."""

  def __init__(self, path: str, size: int, spec: specs.Array) -> None:
    self._path = path
    self._shape = (size, *spec.shape)
    self._dtype = spec.dtype
    self._is_float = spec.dtype == np.float32
    self._range = find_range(path, spec)

  def narrow(self, leaf: Any) -> np.ndarray:
    """Returns an array `[B, ...]` of the spec's dtype, within its bounds."""
    array = self._cast(leaf)
    if self._range is not None:
      try:
        self._range.check(array)
      except ValueError as error:
        raise EnvironmentContractError(
          f'{error}. Correct the observation spec or the observation.'
        ) from error
    return array

  def _cast(self, leaf: Any) -> np.ndarray:
    if type(leaf) is np.ndarray and leaf.shape == self._shape:
      dtype = leaf.dtype
      if dtype == self._dtype:
        return leaf
      is_wide = self._is_float and dtype == np.float64
      if is_wide and casting.fits_single(leaf):
        return leaf.astype(np.float32)
    try:
      return casting.cast(leaf, self._shape, self._dtype)
    except ValueError as error:
      raise EnvironmentContractError(f'{self._path}: {error}.') from error


class ActionColumn:
  """One action leaf, cast to the dtype `wide` of the source."""

  def __init__(
    self, path: str, size: int, spec: specs.Array, wide: np.dtype
  ) -> None:
    self._path = path
    self._shape = (size, *spec.shape)
    self._dtype = spec.dtype
    self._wide = wide
    self._is_float = spec.dtype.kind == 'f'
    self._range = find_range(path, spec)
    # The action of an ended slot.
    self._idle = np.zeros(spec.shape, wide)
    if isinstance(spec, specs.BoundedArray):
      idle = np.clip(self._idle, spec.minimum, spec.maximum)
      self._idle = idle.astype(wide)

  def widen(self, leaf: Any, ended: np.ndarray | None) -> np.ndarray:
    """Returns a copy of the source's dtype, with idle actions in ended slots.

    Raises:
      ValueError: If the actions `[B, ...]` do not fit the spec.
      NotFiniteError: If a float is not finite.
    """
    array = np.asarray(leaf)
    if array.dtype != self._dtype or array.shape != self._shape:
      try:
        array = casting.cast(array, self._shape, self._dtype)
      except ValueError as error:
        raise ValueError(f'{self._path}: {error}') from error
    # A copy, because an environment may change its action in place.
    array = array.astype(self._wide)
    if ended is not None:
      array[ended] = self._idle
    if self._range is not None:
      self._range.check(array)
    elif self._is_float and not (finite := np.isfinite(array)).all():
      slot = int(np.argwhere(~finite)[0, 0])
      raise NotFiniteError(
        slot,
        f'{self._path}: expected finite numbers, found {array[slot].tolist()}',
      )
    return array
