"""Writes the experience of a lane to its adder."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import dm_env
import numpy as np

from repertory.components import specs, types
from repertory.components.inference import state_store
from repertory.components.runtime import nests


class _Step(NamedTuple):
  """A step to be written to the adder.

  Attributes:
    timestep: `[B]`.
    action: The action that led there, `[B, ...]`; None where the lane starts.
    extras: The policy's extras of that action, `[B, ...]`.
    version: Learner steps of the variables that chose the action.
  """

  timestep: dm_env.TimeStep
  action: types.Nest = None
  extras: types.Nest = ()
  version: int = 0


class Recorder:
  """Joins the timesteps of a lane with the actions that led to them.

  Each action is stored until the timestep that follows it has arrived. A
  timestep is written to the adder after its answer has been sent.

  Attributes:
    adder: The adder.
    written_version: Learner steps of the variables behind the action of the
      step being written.
  """

  def __init__(
    self,
    adder: Any,
    spec: specs.EnvironmentSpec,
    store: state_store.StateStore,
    batch_size: int,
  ):
    """Starts without an action.

    Args:
      store: Policy and states that act for the lane.
      batch_size: B, environments of the lane.
    """
    self.adder = adder
    self.written_version = 0
    self._store = store
    self._batch_size = batch_size
    self._to_observation = nests.Unflattener(spec.observations)
    self._to_action = nests.Unflattener(spec.actions)
    self._action: types.Nest = None
    self._extras: list[np.ndarray] = []
    self._chosen_by = 0  # The version behind the stored action.
    self._next: _Step | None = None

  def note_first(self, leaves: Sequence[np.ndarray]) -> None:
    """Stores the lane's first timestep; its leaves are `[B, ...]`."""
    self._next = _Step(self._timestep(leaves))

  def note_step(self, leaves: Sequence[np.ndarray]) -> None:
    """Stores the timestep that followed the stored action."""
    self._next = _Step(
      self._timestep(leaves),
      self._action,
      self._store.unflatten_extras(self._extras),
      self._chosen_by,
    )

  def take_extras(
    self, extras: Sequence[np.ndarray], place: int, start: int, num: int
  ) -> None:
    """Copies rows of the policy's extras of a batch.

    Args:
      extras: Leaves, `[bucket, ...]`.
      place: First row in the batch.
      start: First row in the lane.
      num: Number of rows.
    """
    there = slice(place, place + num)
    if num == self._batch_size:
      self._extras = [leaf[there] for leaf in extras]
      return
    if start == 0:
      self._extras = self._store.empty_extras(self._batch_size)
    for array, leaf in zip(self._extras, extras):
      array[start : start + num] = leaf[there]

  def keep_action(self, leaves: Sequence[np.ndarray], version: int) -> None:
    """Stores the answered actions, `[B, ...]`, for the next step.

    Args:
      version: Learner steps of the variables that chose them.
    """
    self._action = self._to_action([leaf.copy() for leaf in leaves])
    self._chosen_by = version

  def forget_action(self, leaves: Sequence[np.ndarray]) -> None:
    """Stores zeros, where no action was needed.

    Args:
      leaves: Leaves shaped as those of an action, `[B, ...]`.
    """
    self._action = self._to_action([np.zeros_like(leaf) for leaf in leaves])
    self._extras = self._store.empty_extras(self._batch_size)

  def go_on(self) -> bool:
    """Writes the stored step to the adder; returns whether that must wait."""
    step, self._next = self._next, None
    if step is None:
      return False
    if step.action is None:
      self.adder.add_first(step.timestep)
      return False
    self.written_version = step.version
    self.adder.put(step.action, step.timestep, step.extras)
    return self.adder.is_ahead()

  def _timestep(self, leaves: Sequence[np.ndarray]) -> dm_env.TimeStep:
    step_type, reward, discount, *observation = leaves
    return dm_env.TimeStep(
      step_type, reward, discount, self._to_observation(observation)
    )
