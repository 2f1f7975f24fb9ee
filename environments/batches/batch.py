"""Batch of environments that are stepped one after the other."""

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

import dm_env
import numpy as np
from dm_env import specs

from repertory.environments.batches import layout, vector_batch
from repertory.environments.batches.layout import Nest
from repertory.environments.rendering import rendering
from repertory.environments.values import casting
from repertory.environments.values.argument_checks import ArgumentError
from repertory.environments.wrappers import (
  environment_wrapper,
  single_precision,
)

EnvironmentContractError = layout.EnvironmentContractError

_FIRST, _MID, _LAST = dm_env.StepType
_SPECS = ('observation_spec', 'action_spec', 'reward_spec', 'discount_spec')
# Scalar types that are compared without conversion.
_FLOATS = frozenset({float, np.float32, np.float64})


class EnvironmentBatch(vector_batch.VectorBatch):
  """Environment batch that steps its environments in a loop: see `VectorBatch`.

  Structure, shape and dtype of each value are compared with the specs before it
  is copied, because a wrong shape that broadcasts is hard to find later on. The
  values of rewards, discounts and bounded integers of observations are checked,
  too.
  """

  def __init__(self, environments: Sequence[dm_env.Environment]):
    """Takes ownership of the environments; only the batch may step them.

    Args:
      environments: B distinct environments with equal specs and scalar rewards
        and discounts.

    Raises:
      ValueError: If the list is empty, an environment comes twice, or the specs
        differ.
    """
    _check_environments(environments)
    wrapper = single_precision.SinglePrecision
    wide = [e.environment for e in environments if isinstance(e, wrapper)]
    # The batch casts faster than the wrappers.
    is_wide = len(wide) == len(environments)
    super().__init__(_Loop(wide if is_wide else environments))


def _check_environments(environments: Sequence[dm_env.Environment]) -> None:
  if not environments:
    raise ArgumentError(
      'environments', 'expected at least one environment, got none.'
    )
  ids = [id(environment) for environment in environments]
  for slot, environment in enumerate(environments):
    if ids.index(id(environment)) != slot:
      raise ArgumentError(
        'environments',
        f'expected distinct environments, but slots {ids.index(ids[slot])} and'
        f' {slot} hold the same one. Make a new one for each slot.',
      )
    for name in _SPECS:
      expected = getattr(environments[0], name)()
      found = getattr(environment, name)()
      if expected != found:
        raise ArgumentError(
          'environments',
          f'expected equal specs, but the `{name}()` of slot {slot} is {found}'
          f' and that of slot 0 is {expected}. Batch only environments of one'
          ' kind.',
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


class _Loop(vector_batch.VectorSource):
  """A list of environments as a `vector_batch.VectorSource`.

  A value that matches its spec exactly costs a few comparisons; all else passes
  through `casting.cast`.
  """

  def __init__(self, environments: Sequence[dm_env.Environment]):
    first = environments[0]
    super().__init__(
      len(environments),
      first.observation_spec(),
      first.action_spec(),
      # Cast here already, so that messages show an invalid reward unchanged.
      single_precision.narrow(first.reward_spec(), 'reward'),
      first.discount_spec(),
    )
    self._environments = list(environments)
    self._observations = layout.NestLayout(self.observation_spec, 'observation')
    self._leaves = [(s.shape, s.dtype) for s in self._observations.specs]
    # An observation of this shape and dtype is copied without further checks.
    is_leaf = self._observations.is_leaf
    self._plain = self._leaves[0] if is_leaf else (None, None)
    self._actions = layout.NestLayout(self.action_spec, '`actions`')
    self._max_reward = float(np.finfo(self.reward_spec.dtype).max)

  def reset(self) -> Nest:
    size = self.batch_size
    return self._advance([None] * size, [True] * size).observation

  def step(self, actions, ended):
    restarts = [False] * self.batch_size if ended is None else ended.tolist()
    rows = list(actions) if self._actions.is_leaf else [
      self._actions.unflatten(row)
      for row in zip(*self._actions.flatten(actions))
    ]  # fmt: skip
    return self._advance(rows, restarts)

  def _advance(
    self, actions: Sequence[Nest], restarts: Sequence[bool]
  ) -> vector_batch.StepResult:
    size, highest = self.batch_size, self._max_reward
    arrays = [np.empty((size, *s), dtype) for s, dtype in self._leaves]
    rewards, discounts, last = [0.0] * size, [1.0] * size, [False] * size
    shape, dtype = self._plain
    slots = zip(range(size), self._environments, actions, restarts)
    for slot, environment, action, again in slots:
      try:
        timestep = environment.reset() if again else environment.step(action)
        if type(timestep) is not dm_env.TimeStep:
          method = 'reset' if again else 'step'
          environment_wrapper.check_timestep(environment, method, timestep)
      except EnvironmentContractError as error:  # It already gives advice.
        raise vector_batch.SlotError(slot, str(error), advice='') from error
      step_type, reward, discount, observation = timestep
      try:
        if again:
          if step_type is not _FIRST:
            due = 'StepType.FIRST of `reset`'
            raise _mismatch('step_type', due, step_type)
        else:
          if step_type is not _MID:
            if step_type is not _LAST:
              due = 'StepType.MID or StepType.LAST of `step`'
              raise _mismatch('step_type', due, step_type)
            last[slot] = True
          # Fast path for plain Python floats, without a function call.
          if type(reward) is float and -highest <= reward <= highest:
            rewards[slot] = reward
          else:
            rewards[slot] = self._check_reward(reward)
          if type(discount) is not float or discount != 1.0:
            discounts[slot] = self._check_discount(discount)
        if (
          type(observation) is np.ndarray
          and observation.shape == shape
          and observation.dtype == dtype
        ):
          arrays[0][slot] = observation
        else:
          self._store(observation, arrays, slot)
      except ValueError as error:
        raise vector_batch.SlotError(slot, str(error)) from error
    # Shortcuts for the common cases, which save microseconds of NumPy.
    same = discounts.count(1.0) == size
    return vector_batch.StepResult(
      self._observations.unflatten(arrays),
      np.array(rewards, self.reward_spec.dtype),
      None if same else np.array(discounts, self.discount_spec.dtype),
      np.array(last, np.bool_) if True in last else None,
    )

  def info(self, slot: int) -> Mapping[str, Any] | None:
    """Returns the attribute `info` of an environment; None if it has none."""
    info = getattr(self._environments[slot], 'info', None)
    return info if isinstance(info, Mapping) else None

  def render(self, slots: Sequence[int]) -> rendering.Frames:
    return [rendering.render(self._environments[slot]) for slot in slots]

  @property
  def render_fps(self) -> float:
    return rendering.rate(self._environments[0])

  def close(self) -> None:
    """Closes every environment even if one of them fails."""
    with contextlib.ExitStack() as stack:
      for environment in self._environments:
        stack.callback(environment.close)

  def _check_reward(self, reward: Any) -> float:
    dtype, highest = self.reward_spec.dtype, self._max_reward
    value = _to_float('reward', reward, dtype)
    if -highest <= value <= highest:  # False for NaN too.
      return value
    raise _mismatch('reward', f'a finite number of {dtype}', reward)

  def _check_discount(self, discount: Any) -> float:
    value = _to_float('discount', discount, self.discount_spec.dtype)
    if 0.0 <= value <= 1.0:
      return value
    raise _mismatch('discount', 'a number in [0, 1]', discount)

  def _store(
    self, observation: Nest, arrays: Sequence[np.ndarray], slot: int
  ) -> None:
    """Copies an observation into row `slot` of the arrays of its leaves."""
    leaves = self._observations.flatten(observation)
    paths = self._observations.paths
    for array, leaf, path, (shape, dtype) in zip(
      arrays, leaves, paths, self._leaves
    ):
      if (
        not isinstance(leaf, (np.ndarray, np.generic))
        or leaf.shape != shape
        or leaf.dtype != dtype
      ):
        leaf = casting.cast(leaf, shape, dtype, path)
      array[slot] = leaf


def _mismatch(name: str, expected: str, found: Any) -> ValueError:
  return ValueError(f'{name}: expected {expected}, found {found!r:.200}')


def _to_float(name: str, value: Any, dtype: np.dtype) -> float:
  if type(value) not in _FLOATS:
    value = casting.cast(value, (), dtype, name)
  return float(value)
