"""Leaves of a batch: checks and casts between source and policy."""

from collections.abc import Callable
from typing import Any

import numpy as np
from dm_env import specs

from repertory.components.config import settings
from repertory.environments.values import casting


class EnvironmentContractError(settings.InputError):
  """Raised if an environment violates its specs or dm_env's contract."""


class NotFiniteError(FloatingPointError):
  """Raised if the action of `slot` is NaN or infinite."""

  def __init__(self, slot: int, message: str):
    super().__init__(message)
    self.slot = slot


def make_range_check(
  path: str, spec: specs.Array, row: str = 'slot'
) -> Callable[[np.ndarray], None] | None:
  """Returns the check of an integer leaf `[B, ...]`; None if it has no bounds.

  The check raises a ValueError that names the leaf `path`, and a `row` whose
  integers are out of bounds.
  """
  if spec.dtype.kind not in 'iu' or not isinstance(spec, specs.BoundedArray):
    return None
  minimum, maximum = spec.minimum, spec.maximum
  limits = np.iinfo(spec.dtype)
  if np.all(minimum == limits.min) and np.all(maximum == limits.max):
    return None
  num_values = getattr(spec, 'num_values', 0)

  def check(array: np.ndarray) -> None:
    if num_values:
      # Viewed as unsigned, negative numbers are large.
      unsigned = array.view(f'u{array.itemsize}')  # [B]
      if np.maximum.reduce(unsigned) < num_values:
        return
    outside = (array < minimum) | (array > maximum)
    if outside.any():
      index = int(np.argwhere(outside)[0, 0])
      raise ValueError(
        f'{path}: expected integers from {minimum.tolist()} to '
        f'{maximum.tolist()}, found '
        f'{casting.shorten(array[index].tolist())} in {row} {index}'
      )

  return check


class ObservationColumn:
  """One observation leaf, cast to the dtype of the batch."""

  def __init__(self, path: str, size: int, spec: specs.Array) -> None:
    self._path = path
    self._shape = (size, *spec.shape)
    self._dtype = spec.dtype
    self._is_float = spec.dtype == np.float32
    self._check_range = make_range_check(path, spec)

  def narrow(self, leaf: Any) -> np.ndarray:
    """Returns an array `[B, ...]` of the spec's dtype, within its bounds."""
    array = self._cast(leaf)
    if self._check_range is not None:
      try:
        self._check_range(array)
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
    self._check_range = make_range_check(path, spec)
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
      array = casting.cast(array, self._shape, self._dtype, self._path)
    # A copy, because an environment may change its action in place.
    array = array.astype(self._wide)
    if ended is not None:
      array[ended] = self._idle
    if self._check_range is not None:
      self._check_range(array)
    elif self._is_float and not (finite := np.isfinite(array)).all():
      slot = int(np.argwhere(~finite)[0, 0])
      raise NotFiniteError(
        slot,
        f'{self._path}: expected finite numbers, found {array[slot].tolist()}',
      )
    return array
