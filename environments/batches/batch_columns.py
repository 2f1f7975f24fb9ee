"""Leaves of a batch: checks and casts between source and policy."""

from collections.abc import Callable
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


def make_narrow(
  path: str, size: int, spec: specs.Array
) -> Callable[[Any], np.ndarray]:
  """Returns the check and cast of an observation leaf `[B, ...]`.

  The result has the spec's dtype, and is within its bounds.
  """
  shape, dtype = (size, *spec.shape), spec.dtype
  is_single = dtype == np.float32
  check_range = make_range_check(path, spec)

  def cast(leaf: Any) -> np.ndarray:
    if type(leaf) is np.ndarray and leaf.shape == shape:
      if leaf.dtype == dtype:
        return leaf
      if is_single and leaf.dtype == np.float64 and casting.fits_single(leaf):
        return leaf.astype(np.float32)
    try:
      return casting.cast(leaf, shape, dtype)
    except ValueError as error:
      raise EnvironmentContractError(f'{path}: {error}.') from error

  def narrow(leaf: Any) -> np.ndarray:
    array = cast(leaf)
    if check_range is not None:
      try:
        check_range(array)
      except ValueError as error:
        raise EnvironmentContractError(
          f'{error}. Correct the observation spec or the observation.'
        ) from error
    return array

  return narrow


def make_widen(
  path: str, size: int, spec: specs.Array, wide: np.dtype
) -> Callable[[Any, np.ndarray | None], np.ndarray]:
  """Returns the check and cast of an action leaf to the source's dtype `wide`.

  It takes actions `[B, ...]`, and the ended slots, `[B]` or None, which get the
  valid action closest to 0. It raises a ValueError for actions that do not fit
  the spec, and a NotFiniteError for floats that are not finite.
  """
  shape, dtype = (size, *spec.shape), spec.dtype
  check_range = make_range_check(path, spec)
  idle = np.zeros(spec.shape, wide)
  if isinstance(spec, specs.BoundedArray):
    idle = np.clip(idle, spec.minimum, spec.maximum).astype(wide)

  def widen(leaf: Any, ended: np.ndarray | None) -> np.ndarray:
    array = np.asarray(leaf)
    if array.dtype != dtype or array.shape != shape:
      array = casting.cast(array, shape, dtype, path)
    # A copy, because an environment may change its action in place.
    array = array.astype(wide)
    if ended is not None:
      array[ended] = idle
    if check_range is not None:
      check_range(array)
    elif dtype.kind == 'f' and not (finite := np.isfinite(array)).all():
      slot = int(np.argwhere(~finite)[0, 0])
      raise NotFiniteError(
        slot,
        f'{path}: expected finite numbers, found {array[slot].tolist()}',
      )
    return array

  return widen
