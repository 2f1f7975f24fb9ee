"""Wrapper that casts all values to at most 32 bits."""

from collections.abc import Callable
from typing import Any

import dm_env
import numpy as np
from dm_env import specs

from repertory.environments.batches import layout
from repertory.environments.batches.layout import Nest
from repertory.environments.values import casting
from repertory.environments.values.argument_checks import ArgumentError
from repertory.environments.wrappers import environment_wrapper

_NARROW = {
  np.dtype(np.float64): np.dtype(np.float32),
  np.dtype(np.int64): np.dtype(np.int32),
}


class SinglePrecision(environment_wrapper.EnvironmentWrapper):
  """Casts float64 to float32 and int64 to int32 in all timesteps.

  Actions are cast back to the dtypes that the environment expects. Bounds are
  cast with the values; those of float actions are rounded inwards, so that
  every action within the narrow spec is within the wide one, too. A number that
  does not fit into 32 bits raises an error instead of becoming another number
  or infinity.
  """

  def __init__(self, environment: dm_env.Environment):
    """Wraps the environment.

    Args:
      environment: Any environment; one of single precision is left unchanged.

    Raises:
      ValueError: If a discrete spec has more values than int32, or no float32
        lies between the bounds of an action.
    """
    super().__init__(environment)
    self._specs: dict[str, Nest] = {}
    self._casts: dict[str, Callable[[Nest], Nest]] = {}
    for name in ('observation', 'action', 'reward', 'discount'):
      wide = getattr(environment, f'{name}_spec')()
      is_action = name == 'action'
      spec = self._specs[name] = narrow(wide, name, inwards=is_action)
      self._casts[name] = _make_cast(name, wide if is_action else spec)

  def step(self, action: Nest) -> dm_env.TimeStep:
    return super().step(self._casts['action'](action))

  def observation_spec(self) -> Nest:
    return self._specs['observation']

  def action_spec(self) -> Nest:
    return self._specs['action']

  def reward_spec(self) -> Nest:
    return self._specs['reward']

  def discount_spec(self) -> Nest:
    return self._specs['discount']

  def _convert(self, timestep: dm_env.TimeStep) -> dm_env.TimeStep:
    reward, discount = timestep.reward, timestep.discount
    return dm_env.TimeStep(
      timestep.step_type,
      None if reward is None else self._casts['reward'](reward),
      None if discount is None else self._casts['discount'](discount),
      self._casts['observation'](timestep.observation),
    )


def narrow(nested_spec: Nest, name: str, inwards: bool = False) -> Nest:
  """Returns a nest of specs of at most 32 bits, as `SinglePrecision` does.

  Messages call it `name`. `inwards` rounds the bounds of floats inwards.
  """
  wide = layout.NestLayout(nested_spec, name)
  return wide.unflatten(
    [_narrow_spec(*pair, inwards) for pair in zip(wide.paths, wide.specs)]
  )


def _make_cast(name: str, target: Nest) -> Callable[[Nest], Nest]:
  """Returns the cast of a nest of arrays to the dtypes of the target."""
  targets = layout.NestLayout(target, name)

  def make(path: str, spec: specs.Array) -> Callable[[Any], Any]:
    def cast(value: Any) -> Any:
      if getattr(value, 'dtype', None) == spec.dtype:
        return value
      return casting.cast(value, spec.shape, spec.dtype, path)[()]

    return cast

  return targets.mapper(list(map(make, targets.paths, targets.specs)))


def _narrow_spec(name: str, spec: specs.Array, inwards: bool) -> specs.Array:
  spec = _share_bounds(spec)
  dtype = _NARROW.get(spec.dtype)
  if dtype is None:
    return spec
  if isinstance(spec, specs.DiscreteArray):
    if spec.num_values - 1 > np.iinfo(dtype).max:
      raise ArgumentError(
        'environment',
        f'expected {name} to have at most 2**31 values, got'
        f' {spec.num_values}; they do not fit into int32.',
      )
    return specs.DiscreteArray(spec.num_values, dtype, spec.name)
  if not isinstance(spec, specs.BoundedArray):
    return specs.Array(spec.shape, dtype, spec.name)
  if dtype.kind == 'i':
    limits = np.iinfo(dtype)
    minimum = np.clip(spec.minimum, limits.min, limits.max)
    maximum = np.clip(spec.maximum, limits.min, limits.max)
  else:
    minimum = _round_bound(spec.minimum, dtype, np.inf if inwards else None)
    maximum = _round_bound(spec.maximum, dtype, -np.inf if inwards else None)
    if (minimum > maximum).any():
      raise ArgumentError(
        'environment',
        f'expected a number of {dtype} between the bounds of'
        f' {name}, got {spec}. Give all environments wider bounds, or leave'
        ' out actions that have no choice.',
      )
  return spec.replace(dtype=dtype, minimum=minimum, maximum=maximum)


def _share_bounds(spec: specs.Array) -> specs.Array:
  """Replaces each bound `[...]` by a scalar if all its numbers are equal.

  The bounds of an image would fill a page in messages.
  """
  if not isinstance(spec, specs.BoundedArray) or spec.shape == ():
    return spec
  minimum, maximum = (
    bound.flat[0] if bound.size and (bound == bound.flat[0]).all() else bound
    for bound in (spec.minimum, spec.maximum)
  )
  return spec.replace(minimum=minimum, maximum=maximum)


def _round_bound(
  bound: np.ndarray, dtype: np.dtype, towards: float | None
) -> np.ndarray:
  """Rounds to the nearest number, or to the nearest one in a direction."""
  with np.errstate(over='ignore'):
    rounded = bound.astype(dtype)
  if towards is None:
    return rounded
  wide = rounded.astype(bound.dtype)
  outside = wide < bound if towards > 0 else wide > bound
  return np.where(outside, np.nextafter(rounded, dtype.type(towards)), rounded)
