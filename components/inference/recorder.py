"""What an adder is told of the environments of a lane."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import dm_env
import numpy as np

from repertory.components import nests, specs, types
from repertory.components.inference import state_store


class _Step(NamedTuple):
  """What the adder is to be told next.

  Attributes:
    timestep: `[B]`.
    action: The one that led there, `[B, ...]`; None where the lane starts.
    extras: What the policy gave with it, `[B, ...]`.
    version: Learner steps of the variables that chose it.
  """

  timestep: dm_env.TimeStep
  action: types.Nest = None
  extras: types.Nest = ()
  version: int = 0


class Recorder:
  """Joins the timesteps of a lane with the actions that led to them.

  An action is known before the timestep that it leads to; so it is kept until
  that has come. The adder hears of a timestep after its answer has gone out.

  Attributes:
    adder: What is told.
    written_version: Learner steps of the variables that chose the action of the
      step that the adder is told of.
  """

  def __init__(
    self,
    adder: Any,
    spec: specs.EnvironmentSpec,
    store: state_store.StateStore,
    batch_size: int,
  ):
    """Begins without an action.

    Args:
      store: Acts for the lane.
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
    self._chosen_by = 0  # The version that chose the action that is kept.
    self._next: _Step | None = None

  def note_first(self, leaves: Sequence[np.ndarray]) -> None:
    """Notes where the lane starts: the leaves of a timestep, `[B, ...]`."""
    self._next = _Step(self._timestep(leaves))

  def note_step(self, leaves: Sequence[np.ndarray]) -> None:
    """Notes where the action led that is kept."""
    self._next = _Step(
      self._timestep(leaves),
      self._action,
      self._store.unflatten_extras(self._extras),
      self._chosen_by,
    )

  def take_extras(
    self, extras: Sequence[np.ndarray], place: int, start: int, num: int
  ) -> None:
    """Keeps rows of what the policy gave with the actions of a batch.

    Args:
      extras: Leaves, `[bucket, ...]`.
      place: Where in the batch.
      start: From which row of the lane.
      num: How many.
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
    """Keeps what was answered, `[B, ...]`, for the step that follows.

    Args:
      version: Learner steps of the variables that chose it.
    """
    self._action = self._to_action([leaf.copy() for leaf in leaves])
    self._chosen_by = version

  def forget_action(self, leaves: Sequence[np.ndarray]) -> None:
    """Keeps zeros, where no action was needed.

    Args:
      leaves: Like those of an action, `[B, ...]`.
    """
    self._action = self._to_action([np.zeros_like(leaf) for leaf in leaves])
    self._extras = self._store.empty_extras(self._batch_size)

  def go_on(self) -> bool:
    """Tells the adder what was noted; returns whether it must wait then."""
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
