"""Batch wrapper that adds the previous action and reward to observations."""

from typing import Any

import dm_env
import numpy as np
from dm_env import specs

from repertory.environments.batches import layout, vector_batch
from repertory.environments.batches.layout import Nest
from repertory.environments.values import casting

_FIRST = int(dm_env.StepType.FIRST)


class PreviousActionAndReward(vector_batch.BatchWrapper):
  """Adds the previous action and reward to a batch's observations.

  Recurrent agents feed them to their network, which otherwise does not know
  which exploratory actions were taken: R2D2 (Kapturowski et al. 2019, appendix,
  https://openreview.net/forum?id=r1lyTjAqYX) and IMPALA (Espeholt et al. 2018,
  figure 3, https://arxiv.org/abs/1802.01561).

  The interface is that of `batch.EnvironmentBatch`. An observation is a dict:

  - 'observation': the observation of the batch, unchanged.
  - 'previous_action': nest of arrays `[B, ...]` of the action spec. Where the
    timestep is FIRST, zeros, or the nearest values within the spec's bounds.
  - 'previous_reward': `[B]` of the reward's dtype, 0 where FIRST.

  All arrays are new in each step. Actions are cast to the spec's dtypes but not
  clipped to its bounds.
  """

  def __init__(self, environment_batch: Any):
    super().__init__(environment_batch)
    actions, size = (
      environment_batch.action_spec(),
      environment_batch.batch_size,
    )
    self._actions = layout.NestLayout(actions, '`actions`')
    # Fill value of the actions where the timestep is FIRST: see `np.full`.
    self._leaves = [
      ((size, *spec.shape), layout.make_initial_action(spec), spec.dtype)
      for spec in self._actions.specs
    ]
    self._observation_spec = {
      'observation': environment_batch.observation_spec(),
      'previous_action': actions,
      'previous_reward': include_zero(environment_batch.reward_spec()),
    }

  def observation_spec(self) -> dict[str, Nest]:
    """Returns the dict of specs; bounds of rewards are widened to include 0."""
    return self._observation_spec

  def reset(self) -> dm_env.TimeStep:
    return self._extend(self.batch.reset(), None)

  def step(self, actions: Nest) -> dm_env.TimeStep:
    return self._extend(self.batch.step(actions), actions)

  def _extend(
    self, timestep: dm_env.TimeStep, actions: Nest
  ) -> dm_env.TimeStep:
    first = timestep.step_type == _FIRST  # [B]
    # A batch that resets all slots ignores the actions, which may be None.
    if first.all():
      arrays = [np.full(*leaf) for leaf in self._leaves]
    else:
      # The batch has checked the actions.
      pairs = zip(self._actions.flatten(actions), self._leaves)
      arrays = []
      for leaf, (shape, initial, dtype) in pairs:
        array = casting.cast(np.array(leaf), shape, dtype)
        array[first] = initial
        arrays.append(array)
    observation = {
      'observation': timestep.observation,
      'previous_action': self._actions.unflatten(arrays),
      # The batch gives 0 where FIRST. A copy, because callers may clip rewards.
      'previous_reward': timestep.reward.copy(),
    }
    return timestep._replace(observation=observation)


def original(observation: dict[str, Nest]) -> Nest:
  """Returns the original observation of the batch."""
  return observation['observation']


def include_zero(spec: specs.Array) -> specs.Array:
  """Returns the spec itself if it allows 0, else one with wider bounds."""
  is_bounded = isinstance(spec, specs.BoundedArray)
  if not is_bounded or spec.minimum <= 0 <= spec.maximum:
    return spec
  low, high = np.minimum(spec.minimum, 0), np.maximum(spec.maximum, 0)
  return specs.BoundedArray(spec.shape, spec.dtype, low, high, spec.name)
