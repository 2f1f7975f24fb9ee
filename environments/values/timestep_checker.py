"""Validation of timesteps against the specs of an environment."""

from collections.abc import Sequence
from typing import Any

import dm_env
import numpy as np
from dm_env import specs

from repertory.environments.batches import layout
from repertory.environments.batches.layout import Nest
from repertory.environments.values import casting
from repertory.environments.values.argument_checks import ArgumentError

_SPECS = ('observation_spec', 'action_spec', 'reward_spec', 'discount_spec')
# Scalar types that are compared without conversion.
_FLOATS = frozenset({float, np.float32, np.float64})


def check_environments(environments: Sequence[dm_env.Environment]) -> None:
  """Checks that the environments can form a batch.

  Raises:
    ValueError: If the list is empty, an environment comes twice, the specs
      differ, or the reward or the discount is not a float scalar.
  """
  if not environments:
    raise ArgumentError(
      'environments', 'expected at least one environment, got none.'
    )
  slots: dict[int, int] = {}
  for slot, environment in enumerate(environments):
    if slots.setdefault(id(environment), slot) != slot:
      raise ArgumentError(
        'environments',
        'expected distinct environments, but slots'
        f' {slots[id(environment)]} and {slot} hold the same one. Make a new'
        ' one for each slot.',
      )
  for name in _SPECS:
    expected = getattr(environments[0], name)()
    for slot, environment in enumerate(environments):
      found = getattr(environment, name)()
      if not _equal(expected, found):
        raise ArgumentError(
          'environments',
          f'expected equal specs, but the `{name}()` of slot'
          f' {slot} is {found} and that of slot 0 is {expected}. Batch only'
          ' environments of one kind.',
        )
  for name in ('reward_spec', 'discount_spec'):
    spec = getattr(environments[0], name)()
    is_scalar = isinstance(spec, specs.Array) and not spec.shape
    if not is_scalar or spec.dtype.kind != 'f':
      raise ArgumentError(
        'environments',
        f'expected the `{name}()` of a scalar of floats, got'
        f' {spec}. Wrap the environments to return one float per step.',
      )


class TimestepChecker:
  """Checks the parts of a timestep; messages start with the part's name.

  The common case, a value that matches its spec exactly, costs a few
  comparisons; all else passes through `casting.cast`. Callers may use the
  attributes to skip calls.

  Attributes:
    plain: Shape and dtype of an observation that is a single array, else Nones;
      an array that matches can be copied without a check.
    reward_limit: The largest finite reward; its negative is the smallest.
  """

  def __init__(
    self,
    observation: layout.NestLayout,
    reward: specs.Array,
    discount: specs.Array,
  ):
    self._layout = observation
    self._leaves = [(spec.shape, spec.dtype) for spec in observation.specs]
    self.plain = self._leaves[0] if observation.is_leaf else (None, None)
    self._reward_dtype = reward.dtype
    self.reward_limit = float(np.finfo(reward.dtype).max)
    self._discount_dtype = discount.dtype

  def check_reward(self, reward: Any) -> float:
    """Returns the reward as a float.

    Raises:
      ValueError: If it is not a finite scalar that fits the spec's dtype.
    """
    value = reward
    if type(value) not in _FLOATS:
      value = _cast('reward', value, (), self._reward_dtype)
    value = float(value)
    # False for NaN too.
    if -self.reward_limit <= value <= self.reward_limit:
      return value
    raise ValueError(
      f'reward: expected a finite number of {self._reward_dtype}, found'
      f' {casting.shorten(reward)}'
    )

  def check_discount(self, discount: Any) -> float:
    """Returns the discount as a float.

    Raises:
      ValueError: If it is not a scalar in [0, 1].
    """
    value = discount
    if type(value) not in _FLOATS:
      value = _cast('discount', value, (), self._discount_dtype)
    value = float(value)
    if 0.0 <= value <= 1.0:
      return value
    raise ValueError(
      'discount: expected a number in [0, 1], found'
      f' {casting.shorten(discount)}'
    )

  def store(
    self, observation: Nest, arrays: Sequence[np.ndarray], slot: int
  ) -> None:
    """Copies an observation into a batch.

    Args:
      observation: Nest of the observation spec's structure, without `[B]`.
      arrays: One array `[B, ...]` per leaf; row `slot` is written.
      slot: Index of the row.

    Raises:
      ValueError: If structure, shape or kind of dtype differs from the spec's.
    """
    leaves = self._layout.flatten(observation)
    for index, (shape, dtype) in enumerate(self._leaves):
      leaf = leaves[index]
      if (
        not (type(leaf) is np.ndarray or isinstance(leaf, np.generic))
        or leaf.shape != shape
        or leaf.dtype != dtype
      ):
        leaf = _cast(self._layout.paths[index], leaf, shape, dtype)
      arrays[index][slot] = leaf


def _cast(
  name: str, value: Any, shape: tuple[int, ...], dtype: np.dtype
) -> np.ndarray:
  try:
    return casting.cast(value, shape, dtype)
  except ValueError as error:
    raise ValueError(f'{name}: {error}') from error


def _equal(expected: Nest, found: Nest) -> bool:
  one = layout.NestLayout(expected, 'spec')
  try:
    return one.specs == one.flatten(found)
  except ValueError:  # Another structure.
    return False
