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


def make_codec(space: Any, place: str) -> Codec:
  """Returns the codec of a `gymnasium.Space`.

  `Discrete` becomes a `DiscreteArray`, which starts at 0 even if the space does
  not. A `Box` that is unbounded on all sides becomes an `Array`; any other
  `Box` and the multi-spaces become a `BoundedArray`. `Dict` and `Tuple` become
  nests. Messages have the path of the space, such as
  `observation_space['camera']`.

  Raises:
    ValueError: If the space is of another kind.
  """
  spaces = import_gymnasium().spaces
  if isinstance(space, (spaces.Dict, spaces.Tuple)):
    return _make_nest_codec(space.spaces, place)
  if isinstance(space, spaces.Discrete):
    return _make_discrete_codec(int(space.n), int(space.start), space, place)
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
  return _make_array_codec(spec, place)


def make_batch_codec(space: Any, place: str) -> Codec:
  """Returns the codec of values with a leading `[B]`, which go unchecked."""
  spec = make_codec(space, place).spec
  return Codec(spec, _make_shift(space, -1), _make_shift(space, 1))


def _make_shift(space: Any, sign: int) -> Callable[[Nest], Nest]:
  """Shifts discrete values between their space and a range from 0."""
  spaces = import_gymnasium().spaces
  if isinstance(space, spaces.Dict):
    by_key = {k: _make_shift(s, sign) for k, s in space.spaces.items()}
    return lambda nest: {k: shift(nest[k]) for k, shift in by_key.items()}
  if isinstance(space, spaces.Tuple):
    shifts = [_make_shift(child, sign) for child in space.spaces]
    return lambda nest: tuple(f(part) for f, part in zip(shifts, nest))
  if isinstance(space, spaces.Discrete) and space.start:
    start = sign * space.start
    return lambda array: array + start
  return lambda array: array


def _make_array_codec(spec: specs.Array, place: str) -> Codec:
  shape, dtype = spec.shape, spec.dtype

  def convert(value: Any) -> np.ndarray:
    exact = type(value) is np.ndarray and value.dtype == dtype
    if exact and value.shape == shape:
      return value
    try:
      # Many environments return lists or Python numbers.
      return casting.cast(np.asarray(value), shape, dtype)
    except ValueError as error:
      raise ValueError(f'{place}: {error}.') from error

  return Codec(spec, convert, convert)


def _make_discrete_codec(n: int, start: int, space: Any, place: str) -> Codec:
  make = space.dtype.type

  def shift(value: Any, lowest: int, offset: int) -> Any:
    try:
      number = operator.index(value)
    except TypeError:
      number = lowest - 1
    if not lowest <= number < lowest + n:
      raise ValueError(
        f'{place}: expected an integer from {lowest} to {lowest + n - 1}, found'
        f' {casting.shorten(value)}.'
      )
    return make(number + offset)

  return Codec(
    specs.DiscreteArray(n, space.dtype, place),
    lambda value: shift(value, start, -start),
    lambda action: shift(action, 0, start),
  )


def _make_nest_codec(
  children: abc.Mapping | tuple[Any, ...], place: str
) -> Codec:
  is_mapping = isinstance(children, abc.Mapping)
  items = children.items() if is_mapping else enumerate(children)
  codecs = {key: make_codec(c, f'{place}[{key!r}]') for key, c in items}

  def build(values: Iterable[Any]) -> Nest:
    return dict(zip(codecs, values)) if is_mapping else tuple(values)

  def check(nest: Any) -> Any:
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
    return nest

  def decode(nest: Any) -> Nest:
    check(nest)
    return build(codec.decode(nest[key]) for key, codec in codecs.items())

  def encode(nest: Nest) -> Any:
    check(nest)
    return build(codec.encode(nest[key]) for key, codec in codecs.items())

  return Codec(build(codec.spec for codec in codecs.values()), decode, encode)
