"""Changes of observations: of one environment, or of a batch.

A change is a function from the spec of observations to an `ObservationMap`,
which applies to single observations and to batches.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

import dm_env
import numpy as np
from dm_env import specs

from repertory.environments.batches import layout, mask_check, vector_batch
from repertory.environments.batches.layout import Nest
from repertory.environments.values.argument_checks import ArgumentError
from repertory.environments.wrappers import environment_wrapper


class ObservationMap(NamedTuple):
  """Specs of changed observations, and the change.

  Attributes:
    spec: Nest of specs, without a batch axis.
    convert: Maps observations, or batches `[B, ...]` of them.
  """

  spec: Nest
  convert: Callable[[Nest], Nest]


Change: TypeAlias = Callable[[Nest], ObservationMap]


class ChangedObservations(environment_wrapper.EnvironmentWrapper):
  """Environment with changed observations."""

  def __init__(self, environment: dm_env.Environment, change: Change):
    super().__init__(environment)
    self._spec, self._change = change(environment.observation_spec())

  def observation_spec(self) -> Nest:
    return self._spec

  def _convert(self, timestep: dm_env.TimeStep) -> dm_env.TimeStep:
    return timestep._replace(observation=self._change(timestep.observation))


class ChangedBatch(vector_batch.BatchWrapper):
  """Environment batch with changed observations."""

  def __init__(self, batch: Any, change: Change):
    super().__init__(batch)
    self._spec, self._change = change(batch.observation_spec())

  def observation_spec(self) -> Nest:
    return self._spec

  def _convert(self, timestep: dm_env.TimeStep) -> dm_env.TimeStep:
    return timestep._replace(observation=self._change(timestep.observation))


def keeping_masks(change: Change, spec: Nest) -> ObservationMap:
  """Returns the change of a spec's observations without their action masks.

  An observation with masks remains a dictionary. Its other entries after the
  change are 'observation', unless they are a dictionary, too.
  """
  name = mask_check.NAME
  if not isinstance(spec, Mapping) or name not in spec:
    return change(spec)
  rest = {key: leaf for key, leaf in spec.items() if key != name}
  changed_spec, convert = change(rest)
  is_nested = isinstance(changed_spec, Mapping)

  def join(changed: Nest, mask: Nest) -> Nest:
    changed = changed if is_nested else {'observation': changed}
    return {**changed, name: mask}

  def convert_all(observation: Mapping[str, Nest]) -> Nest:
    others = {key: observation[key] for key in rest}
    return join(convert(others), observation[name])

  return ObservationMap(join(changed_spec, spec[name]), convert_all)


def observe_mask(spec: Nest) -> ObservationMap:
  """Adds the action mask as `allowed`, of float32, which networks do not skip.

  Raises:
    ArgumentError: If observations have no action mask.
  """
  name = mask_check.NAME
  if not isinstance(spec, Mapping) or name not in spec:
    raise ArgumentError(
      'environment', f'expected observations with {name!r}, got {spec}.'
    )
  if 'allowed' in spec:
    raise ArgumentError(
      'environment', f"expected observations without 'allowed', got {spec}."
    )
  masks = layout.NestLayout(spec[name], name)
  numbers = masks.unflatten(
    [specs.BoundedArray(m.shape, np.float32, 0, 1) for m in masks.specs]
  )
  to_numbers = masks.mapper([lambda m: m.astype(np.float32)] * len(masks.specs))

  def convert(observation: Mapping[str, Nest]) -> Nest:
    return {**observation, 'allowed': to_numbers(observation[name])}

  return ObservationMap({**spec, 'allowed': numbers}, convert)


def flatten(spec: Nest) -> ObservationMap:
  """Concatenates all leaves to a vector of float32; booleans become 0 and 1."""
  leaves = layout.NestLayout(spec, 'observation')
  sizes = [math.prod(leaf.shape) for leaf in leaves.specs]
  ranks = [len(leaf.shape) for leaf in leaves.specs]
  minimum, maximum = (
    np.concatenate([_bound(leaf, name, limit).ravel() for leaf in leaves.specs])
    for name, limit in (('minimum', -np.inf), ('maximum', np.inf))
  )
  flat = specs.BoundedArray(
    minimum.shape, np.float32, minimum, maximum, 'observation'
  )

  def to_vector(leaf: Any, rank: int, size: int) -> np.ndarray:
    leaf = np.asarray(leaf, np.float32)
    return leaf.reshape(*leaf.shape[: leaf.ndim - rank], size)

  def convert(observation: Nest) -> np.ndarray:
    rows = zip(leaves.flatten(observation), ranks, sizes)
    return np.concatenate([to_vector(*row) for row in rows], axis=-1)

  return ObservationMap(flat, convert)


def _bound(spec: specs.Array, name: str, limit: float) -> np.ndarray:
  if spec.dtype == np.bool_:
    limit = float(name == 'maximum')
  bound = np.asarray(getattr(spec, name, limit), np.float32)
  return np.broadcast_to(bound, spec.shape)
