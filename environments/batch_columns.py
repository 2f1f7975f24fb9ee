"""The leaves of a batch, on their way between a source and who acts."""

from typing import Any

import numpy as np
from dm_env import specs

from repertory.environments import casting


class EnvironmentContractError(ValueError):
  """An environment broke its specs or dm_env's rules."""


class ObservationColumn:
  """Brings what the source says of one leaf to the dtype of the batch."""

  def __init__(self, path: str, size: int, spec: specs.Array) -> None:
    """Learns what is expected.

    Args:
      path: What messages call the leaf.
      size: B.
      spec: That of one environment.
    """
    self._path = path
    self._shape = (size, *spec.shape)
    self._dtype = spec.dtype
    self._is_float = spec.dtype == np.float32

  def narrow(self, leaf: Any) -> np.ndarray:
    """Returns an array `[B, ...]` of the spec's dtype.

    Raises:
      EnvironmentContractError: If shape or kind of dtype is another.
    """
    if type(leaf) is np.ndarray and leaf.shape == self._shape:
      dtype = leaf.dtype
      if dtype == self._dtype:
        return leaf
      if self._is_float and dtype == np.float64:
        return leaf.astype(np.float32)
    try:
      return casting.cast(leaf, self._shape, self._dtype)
    except ValueError as error:
      raise EnvironmentContractError(f'{self._path}: {error}.') from error


class ActionColumn:
  """Brings the actions of one leaf to the dtype of the source."""

  def __init__(
    self, path: str, size: int, spec: specs.Array, wide: np.dtype
  ) -> None:
    """Learns what is expected.

    Args:
      path: What messages call the leaf.
      size: B.
      spec: That of one environment.
      wide: The source's dtype.
    """
    self._path = path
    self._shape = (size, *spec.shape)
    self._dtype = spec.dtype
    self._wide = wide
    # Of integers with bounds, what `_check_bounds` compares them with.
    self._bounds: tuple[np.ndarray, np.ndarray] | None = None
    # Of a discrete action, and those that are soon found to be in range.
    self._num_values = 0
    self._common: frozenset[int] = frozenset()
    zero = np.zeros(spec.shape, wide)
    if isinstance(spec, specs.DiscreteArray):
      self._num_values = spec.num_values
      if size <= 128:  # For more, NumPy is faster than Python.
        self._common = frozenset(range(min(spec.num_values, 1024)))
    elif isinstance(spec, specs.BoundedArray):
      zero = np.clip(zero, spec.minimum, spec.maximum).astype(wide)
      if spec.dtype.kind in 'iu':
        self._bounds = spec.minimum, spec.maximum
    # What an ended slot is given.
    self._idle = zero

  def widen(self, leaf: Any, ended: np.ndarray | None) -> np.ndarray:
    """Returns a copy of the source's dtype, with idle actions in ended slots.

    Args:
      leaf: `[B, ...]`.
      ended: Which slots have ended, bool `[B]`; None if none has.

    Raises:
      ValueError: If it does not fit the spec, integers out of bounds included.
    """
    array = np.asarray(leaf)
    if array.dtype != self._dtype or array.shape != self._shape:
      try:
        array = casting.cast(array, self._shape, self._dtype)
      except ValueError as error:
        raise ValueError(f'{self._path}: {error}') from error
    # A copy, as an environment may work on its action in place.
    array = array.astype(self._wide)
    if ended is not None:
      array[ended] = self._idle
    if self._num_values and not (
      self._common and self._common.issuperset(array.tolist())
    ):
      self._check_range(array)
    elif self._bounds is not None:
      self._check_bounds(array, *self._bounds)
    return array

  def _check_range(self, array: np.ndarray) -> None:
    # As unsigned numbers, negative ones are large.
    unsigned = array.view(f'u{array.itemsize}')  # [B]
    if np.maximum.reduce(unsigned) >= self._num_values:
      slot = int(np.argmax(unsigned >= self._num_values))
      raise ValueError(
        f'{self._path}: expected integers from 0 to {self._num_values - 1},'
        f' found {array[slot]} in slot {slot}'
      )

  def _check_bounds(
    self, array: np.ndarray, minimum: np.ndarray, maximum: np.ndarray
  ) -> None:
    outside = (array < minimum) | (array > maximum)
    if outside.any():
      slot = int(np.argwhere(outside)[0, 0])
      raise ValueError(
        f'{self._path}: expected integers from {minimum.tolist()} to '
        f'{maximum.tolist()}, found {array[slot].tolist()} in slot {slot}'
      )
