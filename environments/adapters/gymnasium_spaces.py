"""Conversion of Gymnasium spaces to dm_env specs, and of their values."""

import functools
import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from dm_env import specs

from repertory.environments.adapters import extras
from repertory.environments.batches import layout, mask_check
from repertory.environments.batches.layout import Nest
from repertory.environments.values import casting
from repertory.environments.values.argument_checks import ArgumentError


class Codec(NamedTuple):
  """Spec of a Gymnasium space, with the conversions of its values.

  Attributes:
    spec: Nest of specs of the space's structure: dictionaries and tuples.
    decode: Converts a value of the space (an observation) to one of the spec.
    encode: Converts a value of the spec (an action) to one of the space.
  """

  spec: Nest
  decode: Callable[[Any], Nest]
  encode: Callable[[Nest], Any]


def import_gymnasium() -> Any:
  """Returns the module `gymnasium`."""
  return extras.import_extra('gymnasium', 'gymnasium')


def make_codec(space: Any, place: str, is_batch: bool = False) -> Codec:
  """Returns the codec of a `gymnasium.Space`.

  `Discrete` becomes a `DiscreteArray`, which starts at 0 even if the space does
  not. A `Box` that is unbounded on all sides becomes an `Array`; any other
  `Box` and the multi-spaces become a `BoundedArray`. `Dict` and `Tuple` become
  nests. Messages have the path of the space, such as
  `observation_space['camera']`. Zeros and ones of an action mask become bools.

  Args:
    space: The space of one environment.
    place: Name of the space in messages.
    is_batch: Whether values have a leading `[B]`; their arrays go unchecked.

  Raises:
    ValueError: If the space is of another kind.
  """
  spaces = import_gymnasium().spaces
  starts: list[Any] = []  # Of each leaf.
  masks = f'observation_space[{mask_check.NAME!r}]'

  def visit(space: Any, path: str) -> Nest:
    if isinstance(space, spaces.Dict):
      items = space.spaces.items()
      return {key: visit(one, f'{path}[{key!r}]') for key, one in items}
    if isinstance(space, spaces.Tuple):
      parts = enumerate(space.spaces)
      return tuple(visit(one, f'{path}[{i}]') for i, one in parts)
    is_discrete = isinstance(space, spaces.Discrete)
    starts.append(space.start if is_discrete else 0)
    spec = _make_spec(spaces, space, path)
    return _as_mask(spec) if path.startswith(masks) else spec

  nest = layout.NestLayout(spec := visit(space, place), place)
  convert = _shift if is_batch else _check
  leaves = list(zip(nest.paths, nest.specs, starts))
  return Codec(
    spec,
    nest.mapper([convert(*leaf, operator.sub) for leaf in leaves]),
    nest.mapper([convert(*leaf, operator.add) for leaf in leaves]),
  )


def _make_spec(spaces: Any, space: Any, path: str) -> specs.Array:
  if isinstance(space, spaces.Discrete):
    return specs.DiscreteArray(int(space.n), space.dtype, path)
  if isinstance(space, spaces.MultiBinary):
    return specs.BoundedArray(space.shape, space.dtype, 0, 1, path)
  if isinstance(space, spaces.MultiDiscrete):
    minimum, maximum = space.start, space.start + space.nvec - 1
    return specs.BoundedArray(space.shape, space.dtype, minimum, maximum, path)
  if isinstance(space, spaces.Box):
    if not space.bounded_below.any() and not space.bounded_above.any():
      return specs.Array(space.shape, space.dtype, path)
    low, high = space.low, space.high
    return specs.BoundedArray(space.shape, space.dtype, low, high, path)
  raise ArgumentError(
    'gym_env',
    f'expected {path} to be a Box, Discrete, MultiBinary, MultiDiscrete, Dict '
    f'or Tuple, got {space!r}. Wrap the environment so that it returns arrays '
    'of fixed shape.',
  )


def _as_mask(spec: specs.Array) -> specs.Array:
  """Returns the spec of bools of an action mask of zeros and ones."""
  bounds = (getattr(spec, name, None) for name in ('minimum', 'maximum'))
  if all(np.all(bound == i) for i, bound in enumerate(bounds)):
    return specs.Array(spec.shape, np.bool_, spec.name)
  return spec


def _to_mask(path: str, value: Any) -> np.ndarray:
  mask = np.asarray(value)
  if mask.dtype != np.bool_ and not ((mask == 0) | (mask == 1)).all():
    raise ValueError(f'{path}: expected zeros and ones, found {mask}.')
  return mask.astype(np.bool_)


def _shift(
  path: str, spec: specs.Array, start: Any, change: Callable[[Any, Any], Any]
) -> Callable[[Any], Any]:
  """Returns the conversion of a leaf `[B, ...]`, by the start of its space."""
  if spec.dtype == np.bool_:
    return functools.partial(_to_mask, path)
  return (lambda value: change(value, start)) if start else lambda value: value


def _check(
  path: str, spec: specs.Array, start: Any, change: Callable[[Any, Any], Any]
) -> Callable[[Any], Any]:
  """Returns the check and conversion of a leaf of one environment."""
  shape, dtype = spec.shape, spec.dtype
  is_mask = dtype == np.bool_

  def convert_array(value: Any) -> Any:
    if is_mask:
      value = _to_mask(path, value)
    exact = type(value) is np.ndarray and value.dtype == dtype
    if exact and value.shape == shape:
      return value
    # Many environments return lists or Python numbers.
    return casting.cast(np.asarray(value), shape, dtype, path)

  if not isinstance(spec, specs.DiscreteArray):
    return convert_array
  least = int(start) if change is operator.sub else 0
  following = least + spec.num_values

  def convert_discrete(value: Any) -> Any:
    try:
      fits = least <= operator.index(value) < following
    except TypeError:
      fits = False
    if not fits:
      raise ValueError(
        f'{path}: expected an integer from {least} to {following - 1}, found '
        f'{casting.shorten(value)}.'
      )
    value = dtype.type(value)
    return change(value, start) if start else value

  return convert_discrete
