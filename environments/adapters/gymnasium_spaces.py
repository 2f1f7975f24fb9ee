"""Conversion of Gymnasium spaces to dm_env specs, and of their values."""

import operator
from collections import abc
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
from dm_env import specs

from repertory.environments.adapters import extras
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
  `observation_space['camera']`.

  Args:
    space: The space of one environment.
    place: Name of the space in messages.
    is_batch: Whether values have a leading `[B]`; their arrays go unchecked.

  Raises:
    ValueError: If the space is of another kind.
  """
  spaces = import_gymnasium().spaces
  if isinstance(space, (spaces.Dict, spaces.Tuple)):
    return _make_nest_codec(space.spaces, place, is_batch)
  if isinstance(space, spaces.Discrete):
    return _make_discrete_codec(space, place, is_batch)
  if isinstance(space, spaces.MultiBinary):
    spec = specs.BoundedArray(space.shape, space.dtype, 0, 1, place)
  elif isinstance(space, spaces.MultiDiscrete):
    minimum, maximum = space.start, space.start + space.nvec - 1
    spec = specs.BoundedArray(space.shape, space.dtype, minimum, maximum, place)
  elif isinstance(space, spaces.Box):
    if space.bounded_below.any() or space.bounded_above.any():
      low, high = space.low, space.high
      spec = specs.BoundedArray(space.shape, space.dtype, low, high, place)
    else:
      spec = specs.Array(space.shape, space.dtype, place)
  else:
    raise ArgumentError(
      'gym_env',
      f'expected {place} to be a Box, Discrete, MultiBinary,'
      f' MultiDiscrete, Dict or Tuple, got {space!r}. Wrap the environment so'
      ' that it returns arrays of fixed shape.',
    )
  convert = (lambda array: array) if is_batch else _make_cast(spec, place)
  return Codec(spec, convert, convert)


def _make_cast(spec: specs.Array, place: str) -> Callable[[Any], Any]:
  shape, dtype = spec.shape, spec.dtype

  def convert(value: Any) -> Any:
    exact = type(value) is np.ndarray and value.dtype == dtype
    if exact and value.shape == shape:
      return value
    try:
      # Many environments return lists or Python numbers.
      return casting.cast(np.asarray(value), shape, dtype)
    except ValueError as error:
      raise ValueError(f'{place}: {error}.') from error

  return convert


def _make_discrete_codec(space: Any, place: str, is_batch: bool) -> Codec:
  n, start = int(space.n), int(space.start)

  def shift(value: Any, lowest: int, change: Callable[[Any, Any], Any]) -> Any:
    if not is_batch:
      try:
        fits = lowest <= operator.index(value) < lowest + n
      except TypeError:
        fits = False
      if not fits:
        raise ValueError(
          f'{place}: expected an integer from {lowest} to {lowest + n - 1}, '
          f'found {casting.shorten(value)}.'
        )
      value = space.dtype.type(value)
    return change(value, space.start) if start else value

  return Codec(
    specs.DiscreteArray(n, space.dtype, place),
    lambda value: shift(value, start, operator.sub),
    lambda action: shift(action, 0, operator.add),
  )


def _make_nest_codec(
  children: abc.Mapping | tuple[Any, ...], place: str, is_batch: bool
) -> Codec:
  is_mapping = isinstance(children, abc.Mapping)
  items = children.items() if is_mapping else enumerate(children)
  codecs = {k: make_codec(c, f'{place}[{k!r}]', is_batch) for k, c in items}

  def build(values: Iterable[Any]) -> Nest:
    return dict(zip(codecs, values)) if is_mapping else tuple(values)

  def convert(nest: Any, direction: str) -> Nest:
    if is_mapping:
      expected = f'a mapping with the keys {list(codecs)}'
      fits = isinstance(nest, abc.Mapping) and nest.keys() == codecs.keys()
    else:
      expected = f'a tuple of {len(codecs)} parts'
      fits = isinstance(nest, (list, tuple)) and len(nest) == len(codecs)
    if not fits:
      raise ValueError(
        f'{place}: expected {expected}, found {casting.shorten(nest)}.'
      )
    return build(getattr(c, direction)(nest[k]) for k, c in codecs.items())

  return Codec(
    build(codec.spec for codec in codecs.values()),
    lambda nest: convert(nest, 'decode'),
    lambda nest: convert(nest, 'encode'),
  )
