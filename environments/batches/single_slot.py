"""Adapter from a source of batch size 1 to a single environment."""

from collections.abc import Mapping
from typing import Any

import dm_env
import numpy as np
from dm_env import specs

from repertory.environments.batches import layout, vector_batch
from repertory.environments.batches.layout import Nest


class SingleSlot(dm_env.Environment):
  """Source of batch size 1, which it owns, as a plain environment."""

  def __init__(self, source: vector_batch.VectorSource):
    self._batch = vector_batch.VectorBatch(source)
    self._observations = layout.NestLayout(
      self._batch.observation_spec(), 'observation'
    )
    self._actions = layout.NestLayout(self._batch.action_spec(), 'action')

  def reset(self) -> dm_env.TimeStep:
    return self._unbatch(self._batch.reset())

  def step(self, action: Nest) -> dm_env.TimeStep:
    leaves = self._actions.flatten(action)
    actions = [np.asarray(leaf)[np.newaxis] for leaf in leaves]
    return self._unbatch(self._batch.step(self._actions.unflatten(actions)))

  @property
  def info(self) -> Mapping[str, Any] | None:
    """Info of the last step: see `VectorBatch.info`."""
    return self._batch.info(0)

  def observation_spec(self) -> Nest:
    return self._batch.observation_spec()

  def action_spec(self) -> Nest:
    return self._batch.action_spec()

  def reward_spec(self) -> specs.Array:
    return self._batch.reward_spec()

  def discount_spec(self) -> specs.Array:
    return self._batch.discount_spec()

  def render(self) -> np.ndarray:
    """Renders the environment: see `rendering`."""
    return self._batch.render([0])[0]

  @property
  def render_fps(self) -> float:
    """Frames per second of a video."""
    return self._batch.render_fps

  def close(self) -> None:
    self._batch.close()

  def _unbatch(self, timestep: dm_env.TimeStep) -> dm_env.TimeStep:
    leaves = self._observations.flatten(timestep.observation)
    observation = self._observations.unflatten([leaf[0] for leaf in leaves])
    step_type = dm_env.StepType(timestep.step_type[0])
    if step_type is dm_env.StepType.FIRST:
      return dm_env.restart(observation)
    return dm_env.TimeStep(
      step_type, timestep.reward[0], timestep.discount[0], observation
    )
