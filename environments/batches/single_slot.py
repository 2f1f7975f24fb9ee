"""Adapter from a source of batch size 1 to a single environment."""

from collections.abc import Callable, Mapping
from typing import Any

import dm_env
import numpy as np
from dm_env import specs

from repertory.environments.batches import layout, vector_batch
from repertory.environments.batches.layout import Nest
from repertory.environments.values.argument_checks import ArgumentError


class SingleSlot(dm_env.Environment):
  """Source of batch size 1 as a plain environment."""

  def __init__(self, source: vector_batch.VectorSource):
    """Takes ownership of a source of batch size 1.

    Raises:
      ValueError: If its batch size is larger.
    """
    if source.batch_size != 1:
      raise ArgumentError(
        'source', f'expected a batch size of 1, got {source.batch_size}.'
      )
    self._batch = vector_batch.VectorBatch(source)
    observations = layout.NestLayout(
      self._batch.observation_spec(), 'observation'
    )
    actions = layout.NestLayout(self._batch.action_spec(), 'action')
    self._take = _mapper(observations, lambda leaf: leaf[0])
    self._give = _mapper(actions, lambda leaf: np.asarray(leaf)[np.newaxis])

  def reset(self) -> dm_env.TimeStep:
    """Starts an episode."""
    return self._unbatch(self._batch.reset())

  def step(self, action: Nest) -> dm_env.TimeStep:
    """Takes one step, or starts an episode after the last one."""
    return self._unbatch(self._batch.step(self._give(action)))

  @property
  def info(self) -> Mapping[str, Any] | None:
    """Info of the last step: see `VectorBatch.info`."""
    return self._batch.info(0)

  def observation_spec(self) -> Nest:
    """Returns the nest of specs of the observation."""
    return self._batch.observation_spec()

  def action_spec(self) -> Nest:
    """Returns the nest of specs of the action."""
    return self._batch.action_spec()

  def reward_spec(self) -> specs.Array:
    """Returns the spec of the reward, a float32."""
    return self._batch.reward_spec()

  def discount_spec(self) -> specs.Array:
    """Returns the spec of the discount, a float32."""
    return self._batch.discount_spec()

  def render(self) -> np.ndarray:
    """Renders the environment: see `rendering`."""
    return self._batch.render([0])[0]

  @property
  def render_fps(self) -> float:
    """Frames per second of a video."""
    return self._batch.render_fps

  def close(self) -> None:
    """Closes the source."""
    self._batch.close()

  def _unbatch(self, timestep: dm_env.TimeStep) -> dm_env.TimeStep:
    observation = self._take(timestep.observation)
    step_type = dm_env.StepType(timestep.step_type[0])
    if step_type is dm_env.StepType.FIRST:
      return dm_env.restart(observation)
    return dm_env.TimeStep(
      step_type, timestep.reward[0], timestep.discount[0], observation
    )


def _mapper(
  nest_layout: layout.NestLayout, function: Callable[[Any], Any]
) -> Callable[[Nest], Nest]:
  functions = [function] * len(nest_layout.specs)
  return lambda nest: nest_layout.map(functions, nest)
