"""Wrapper that names the action mask of an environment."""

from collections.abc import Mapping
from typing import Any

import dm_env
import numpy as np
from dm_env import specs

from repertory.environments.batches import layout, mask_check
from repertory.environments.batches.layout import EnvironmentContractError, Nest
from repertory.environments.values import argument_checks, casting
from repertory.environments.wrappers import environment_wrapper


class ActionMask(environment_wrapper.EnvironmentWrapper):
  """Makes a leaf of the observation, or of Gymnasium's info, the action mask.

  The mask, of bools or of zeros and ones, becomes the leaf `action_mask` of
  bools. An observation that is not a dictionary becomes its leaf `observation`.
  """

  def __init__(self, environment: dm_env.Environment, name: str):
    """Wraps the environment.

    Args:
      environment: An environment with discrete actions.
      name: Key of the mask in the observation, or else in the info.

    Raises:
      ValueError: If the mask cannot be one of the actions.
    """
    super().__init__(environment)
    self._name = name
    spec = environment.observation_spec()
    self._is_leaf = isinstance(spec, Mapping) and name in spec
    if self._is_leaf:
      mask_spec = spec[name]
    elif hasattr(environment, 'info'):
      mask_spec = mask_check.spec_of(environment.action_spec())
    else:
      raise argument_checks.ArgumentError(
        'action_mask',
        f'expected a key of the observation, got {name!r} for {spec}.',
      )
    self._masks = layout.NestLayout(mask_spec, f'action mask {name!r}')
    self._convert_mask = self._masks.mapper(
      [
        self._make_cast(*leaf)
        for leaf in zip(self._masks.paths, self._masks.specs)
      ]
    )
    leaves = [specs.Array(s.shape, np.bool_, s.name) for s in self._masks.specs]
    self._spec = mask_check.name_mask(spec, name, self._masks.unflatten(leaves))
    mask_check.MaskCheck(self._spec, environment.action_spec())

  def _make_cast(self, path: str, spec: specs.Array):
    def cast(value: Any) -> np.ndarray:
      mask = np.asarray(value)
      if mask.shape != spec.shape or not np.isin(mask, (0, 1)).all():
        raise EnvironmentContractError(
          f'{path}: expected zeros and ones of shape {spec.shape}, found '
          f'{casting.shorten(value)}.'
        )
      return mask.astype(np.bool_)

    return cast

  def observation_spec(self) -> Nest:
    return self._spec

  def _convert(self, timestep: dm_env.TimeStep) -> dm_env.TimeStep:
    observation = timestep.observation
    found = observation
    if not self._is_leaf:
      found = getattr(self._environment, 'info')  # noqa: B009 - not dm_env's.
    if self._name not in found:
      raise EnvironmentContractError(
        f'expected {self._name!r} in the observation, or in the info of each '
        f'step, found the keys {list(found)} in the info.'
      )
    mask = self._convert_mask(found[self._name])
    named = mask_check.name_mask(observation, self._name, mask)
    return timestep._replace(observation=named)
