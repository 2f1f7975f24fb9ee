"""Environment specs: Acme's, re-exported, and their conversion to TensorFlow.

Only `core` and this module import Acme's names, so the rest of the code does
not depend on their origin.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import tree
from acme import specs as acme_specs

from repertory.components import types
from repertory.components.runtime import nests

Array = acme_specs.Array
BoundedArray = acme_specs.BoundedArray
DiscreteArray = acme_specs.DiscreteArray
EnvironmentSpec = acme_specs.EnvironmentSpec


def make_environment_spec(environment: Any) -> EnvironmentSpec:
  """Collects the four specs of an environment, without a batch axis.

  They are copies, see `nests.plain`, so no module can change the environment's.

  Args:
    environment: A `dm_env.Environment` or a batch of them.
  """
  return nests.plain(acme_specs.make_environment_spec(environment))


def tensor_spec(nested_spec: types.Nest, *leading: int | None) -> types.Nest:
  """Returns the `tf.TensorSpec`s of a nest of array specs.

  Args:
    nested_spec: Nest of `dm_env.specs.Array`.
    *leading: Axes prepended to every shape, such as the batch size.
  """
  # Code that only steps environments need not import TensorFlow.
  import tensorflow as tf  # noqa: PLC0415

  return tree.map_structure(
    lambda spec: tf.TensorSpec((*leading, *spec.shape), spec.dtype, spec.name),
    nested_spec,
  )


def zeros(nested_spec: types.Nest, *leading: int) -> types.Nest:
  """Returns arrays of zeros, of the shapes and dtypes of `nested_spec`."""
  return tree.map_structure(
    lambda spec: np.zeros((*leading, *spec.shape), spec.dtype), nested_spec
  )


def describe(spec: Array) -> dict[str, Any]:
  """Returns shape, dtype and bounds of an array spec as JSON values."""
  described = {'shape': list(spec.shape), 'dtype': np.dtype(spec.dtype).name}
  if isinstance(spec, BoundedArray):
    for name in ('minimum', 'maximum'):
      bound = np.asarray(getattr(spec, name))
      # Most bounds are uniform; JSON has no infinity.
      is_same = bound.size and (bound == bound.flat[0]).all()
      values = np.where(
        np.isfinite(bound), bound.astype(object), bound.astype(str)
      )
      described[name] = values.flat[0] if is_same else values.tolist()
  return described


def to_json(nested_spec: types.Nest) -> Any:
  """Returns a nest of array specs as JSON values, for `from_json`.

  Raises:
    TypeError: If there are containers besides lists, tuples and mappings with
      text as keys.
  """
  if isinstance(nested_spec, Array):
    described = describe(nested_spec)
    if isinstance(nested_spec, DiscreteArray):
      described['num_values'] = int(nested_spec.num_values)
    return {**described, 'name': nested_spec.name and str(nested_spec.name)}
  if isinstance(nested_spec, Mapping) and all(
    isinstance(key, str) for key in nested_spec
  ):
    return {'dict': {k: to_json(part) for k, part in nested_spec.items()}}
  if type(nested_spec) in (list, tuple):
    kind = type(nested_spec).__name__
    return {kind: [to_json(part) for part in nested_spec]}
  raise TypeError(f'JSON has no {type(nested_spec).__name__}: {nested_spec!r}.')


def from_json(content: Any) -> types.Nest:
  """Returns the nest that `to_json` described; other values raise anything."""
  match content:
    case {'dict': parts}:
      return {key: from_json(part) for key, part in parts.items()}
    case {'list': parts}:
      return [from_json(part) for part in parts]
    case {'tuple': parts}:
      return tuple(from_json(part) for part in parts)
  shape, name = tuple(content['shape']), content['name']
  dtype: Any = np.dtype(content['dtype'])
  if dtype.hasobject:
    raise ValueError(f'dtype must be of numbers, got {dtype}.')
  if 'num_values' in content:
    return DiscreteArray(content['num_values'], dtype, name)
  if 'minimum' not in content:
    return Array(shape, dtype, name)
  minimum = np.asarray(content['minimum'], dtype)
  maximum = np.asarray(content['maximum'], dtype)
  return BoundedArray(shape, dtype, minimum, maximum, name)
