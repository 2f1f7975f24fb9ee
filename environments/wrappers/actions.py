"""Action wrappers: repetition, scaling and discretization of actions."""

from collections.abc import Mapping

import dm_env
import numpy as np
from dm_env import specs

from repertory.environments.batches import layout, mask_check
from repertory.environments.batches.layout import Nest
from repertory.environments.values import argument_checks
from repertory.environments.wrappers import environment_wrapper


class ActionRepeat(environment_wrapper.EnvironmentWrapper):
  """Repeats each action, and sums the rewards.

  Repetition stops at the end of an episode. The discount is the product of
  those of the steps.
  """

  def __init__(self, environment: dm_env.Environment, num_repeats: int):
    """Wraps the environment; actions take `num_repeats` steps, at least 1."""
    super().__init__(environment)
    spec = environment.observation_spec()
    if isinstance(spec, Mapping) and mask_check.NAME in spec:
      raise argument_checks.ArgumentError(
        'environment',
        'expected one without action masks for action_repeat, because a '
        f'repeated action may be masked, got {spec}.',
      )
    self._num_repeats = argument_checks.check_integer(
      'num_repeats', num_repeats, 1
    )

  def step(self, action: Nest) -> dm_env.TimeStep:
    timestep = super().step(action)
    if timestep.first():
      return timestep
    reward, discount = timestep.reward, timestep.discount
    for _ in range(self._num_repeats - 1):
      if timestep.last():
        break
      timestep = super().step(action)
      reward = reward + timestep.reward
      discount = discount * timestep.discount
    return timestep._replace(reward=reward, discount=discount)


class RescaledActions(environment_wrapper.EnvironmentWrapper):
  """Scales bounded floats of actions from [−1, 1] to their bounds.

  Integers are unchanged.
  """

  def __init__(self, environment: dm_env.Environment):
    """Wraps the environment.

    Raises:
      ValueError: If an action has floats without bounds, or no floats.
    """
    super().__init__(environment)
    self._actions = layout.NestLayout(environment.action_spec(), 'action')
    are_floats = [spec.dtype.kind == 'f' for spec in self._actions.specs]
    if not any(are_floats):
      raise argument_checks.ArgumentError(
        'environment',
        'expected actions with floats for rescale_actions, got '
        f'{environment.action_spec()}.',
      )
    self._functions = [
      _make_scaling(path, spec) if is_float else (lambda leaf: leaf)
      for path, spec, is_float in zip(
        self._actions.paths, self._actions.specs, are_floats
      )
    ]
    self._spec = self._actions.unflatten(
      [
        specs.BoundedArray(spec.shape, spec.dtype, -1, 1, spec.name)
        if is_float else spec
        for spec, is_float in zip(self._actions.specs, are_floats)
      ]
    )  # fmt: skip

  def action_spec(self) -> Nest:
    return self._spec

  def step(self, action: Nest) -> dm_env.TimeStep:
    return super().step(self._actions.mapper(self._functions)(action))


def _make_scaling(path: str, spec: specs.Array):
  minimum, maximum = _bounds_of(path, spec, 'rescale_actions')
  middle, half_width = minimum / 2 + maximum / 2, maximum / 2 - minimum / 2

  def scale(scaled: np.ndarray) -> np.ndarray:
    action = middle + half_width * np.asarray(scaled, np.float64)
    return np.clip(action, minimum, maximum).astype(spec.dtype)

  return scale


class DiscretizedActions(environment_wrapper.EnvironmentWrapper):
  """Replaces each bounded float of an action by one of n evenly spaced values.

  A single float becomes a `DiscreteArray`, several become an array of integers,
  of which each has n choices.
  """

  def __init__(self, environment: dm_env.Environment, num_values: int):
    """Wraps the environment.

    Args:
      environment: An environment whose action is an array of bounded floats.
      num_values: n, at least 2; the first and the last one are the bounds.

    Raises:
      ValueError: If the action is of another kind, or n is too small.
    """
    super().__init__(environment)
    num_values = argument_checks.check_integer('num_values', num_values, 2)
    spec = environment.action_spec()
    if not isinstance(spec, specs.Array) or spec.dtype.kind != 'f':
      raise argument_checks.ArgumentError(
        'environment',
        'expected an action of one array of floats for discretize, got '
        f'{spec}.',
      )
    bounds = _bounds_of('action', spec, 'discretize')
    self._values = np.linspace(*bounds, num_values).reshape(num_values, -1)
    self._inner = spec
    self._spec: specs.Array = specs.BoundedArray(
      spec.shape, np.int32, 0, num_values - 1, spec.name
    )
    if np.prod(spec.shape, dtype=int) == 1:
      self._spec = specs.DiscreteArray(num_values, np.int32, spec.name)

  def action_spec(self) -> Nest:
    return self._spec

  def step(self, action: Nest) -> dm_env.TimeStep:
    index = np.asarray(action, np.int64).reshape(1, -1)
    chosen = np.take_along_axis(self._values, index, axis=0)
    return super().step(
      chosen.reshape(self._inner.shape).astype(self._inner.dtype)
    )


def _bounds_of(
  path: str, spec: specs.Array, option: str
) -> tuple[np.ndarray, np.ndarray]:
  """Returns the bounds of floats; raises ArgumentError without finite ones."""
  minimum, maximum = (
    np.broadcast_to(
      np.asarray(getattr(spec, name, np.inf), np.float64), spec.shape
    )
    for name in ('minimum', 'maximum')
  )
  if not (np.isfinite(minimum) & np.isfinite(maximum)).all():
    raise argument_checks.ArgumentError(
      'environment',
      f'expected bounds of all floats of {path} for {option}, got {spec}.',
    )
  return minimum, maximum
