"""Recording of the experience of an environment batch."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import dm_env
from dm_env import specs

from repertory.environments.batches.layout import Nest
from repertory.environments.rendering import rendering
from repertory.environments.wrappers import previous_action


class StepWriter(Protocol):
  """Interface of writers of experience, called step by step."""

  def begin(self, timestep: dm_env.TimeStep) -> None:
    """Writes the first timestep of all slots, `[B]`."""

  def add(self, action: Nest, next_timestep: dm_env.TimeStep) -> None:
    """Writes the actions and the timesteps that followed, `[B, ...]`."""

  def close(self) -> None:
    """Writes the remaining steps."""


class RecordedEnvironments:
  """Environment batch that writes its episodes to files.

  Closing a wrapper of the batch closes it, too, and writes the remaining steps.
  """

  def __init__(self, environments: Any, writer: StepWriter):
    """Takes ownership of the batch (see `batch`) and of the writer."""
    self._environments = environments
    self._writer = writer

  @property
  def batch_size(self) -> int:
    """The number of slots, B."""
    return self._environments.batch_size

  def observation_spec(self) -> Nest:
    """Returns the nest of specs of one environment, without `[B]`."""
    return self._environments.observation_spec()

  def action_spec(self) -> Nest:
    """Returns the nest of specs of one environment, without `[B]`."""
    return self._environments.action_spec()

  def reward_spec(self) -> specs.Array:
    """Returns the spec of one environment's reward, of shape `()`."""
    return self._environments.reward_spec()

  def discount_spec(self) -> specs.Array:
    """Returns the spec of one environment's discount, of shape `()`."""
    return self._environments.discount_spec()

  def reset(self) -> dm_env.TimeStep:
    """Starts a new episode in every slot."""
    timestep = self._environments.reset()
    self._writer.begin(timestep)
    return timestep

  def step(self, actions: Nest) -> dm_env.TimeStep:
    """Steps every slot, or resets it.

    Raises:
      OSError: If the step cannot be written.
    """
    timestep = self._environments.step(actions)
    self._writer.add(actions, timestep)
    return timestep

  def info(self, slot: int) -> Mapping[str, Any] | None:
    """Returns the info of a slot: see `VectorBatch.info`."""
    return self._environments.info(slot)

  def render(self, slots: Sequence[int]) -> rendering.Pictures:
    """Renders some slots."""
    return self._environments.render(slots)

  @property
  def render_fps(self) -> float:
    """Frames per second of a slot's video."""
    return self._environments.render_fps

  def write(self) -> None:
    """Writes the remaining steps; the batch remains usable.

    Raises:
      RecordingError: If a file cannot be written.
    """
    self._writer.close()

  def close(self) -> None:
    """Writes the remaining steps; closes the batch even if writing fails."""
    try:
      self._writer.close()
    finally:
      self._environments.close()


def find(environments: Any) -> RecordedEnvironments | None:
  """Returns the recorded batch below wrappers of a batch, or None."""
  if isinstance(environments, previous_action.PreviousActionAndReward):
    return find(environments.batch)
  is_recorded = isinstance(environments, RecordedEnvironments)
  return environments if is_recorded else None
