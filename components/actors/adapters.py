"""Adapters between actors for one environment and actors for a batch."""

from collections.abc import Sequence

import dm_env
import numpy as np
import tree

from repertory.components import core, types


class Unbatched(core.Actor):
  """Adapts a batched actor to one environment without a batch axis.

  The result can run in `acme.EnvironmentLoop`.
  """

  def __init__(self, actor: core.Actor):
    """Stores an actor for batches of one."""
    self._actor = actor

  def select_action(self, observation: types.Nest) -> types.Nest:
    action = self._actor.select_action(_add_axis(observation))
    return tree.map_structure(lambda leaf: leaf[0], action)

  def observe_first(self, timestep: dm_env.TimeStep) -> None:
    self._actor.observe_first(_batch_of_one(timestep))

  def observe(self, action: types.Nest, next_timestep: dm_env.TimeStep) -> None:
    self._actor.observe(_add_axis(action), _batch_of_one(next_timestep))

  def update(self, wait: bool = False) -> None:
    self._actor.update(wait)


class Batched(core.Actor):
  """Adapts actors for single environments to a batch, one per slot.

  Actors written for Acme can run in `EnvironmentLoop` in this way.
  """

  def __init__(self, actors: Sequence[core.Actor]):
    """Stores one actor per slot, in order."""
    if not actors:
      raise ValueError('actors must hold one actor per slot, got none.')
    self._actors = list(actors)
    self._last = np.zeros([len(actors)], np.bool_)
    self._action: types.Nest = None

  def select_action(self, observation: types.Nest) -> types.Nest:
    actions = [
      self._select(slot, actor, observation)
      for slot, actor in enumerate(self._actors)
    ]
    return tree.map_structure(lambda *leaves: np.stack(leaves), *actions)

  def observe_first(self, timestep: dm_env.TimeStep) -> None:
    self._last = np.zeros([len(self._actors)], np.bool_)
    for slot, actor in enumerate(self._actors):
      actor.observe_first(_slot_of(timestep, slot))

  def observe(self, action: types.Nest, next_timestep: dm_env.TimeStep) -> None:
    for slot, actor in enumerate(self._actors):
      timestep = _slot_of(next_timestep, slot)
      if timestep.first():
        actor.observe_first(timestep)
      else:
        actor.observe(_row(action, slot), timestep)
    self._last = next_timestep.step_type == dm_env.StepType.LAST

  def update(self, wait: bool = False) -> None:
    for actor in self._actors:
      actor.update(wait)

  def _select(self, slot, actor, observation):
    # After an episode's last step the action is ignored, and the actor must not
    # be called: it has not seen the next episode begin.
    if self._last[slot] and self._action is not None:
      return self._action
    self._action = actor.select_action(_row(observation, slot))
    return self._action


def _add_axis(nest: types.Nest) -> types.Nest:
  return tree.map_structure(lambda leaf: np.asarray(leaf)[None], nest)


def _row(nest: types.Nest, slot: int) -> types.Nest:
  return tree.map_structure(lambda leaf: leaf[slot], nest)


def _batch_of_one(timestep: dm_env.TimeStep) -> dm_env.TimeStep:
  """Adds the batch axis; the first timestep's None become 0 and 1."""
  is_first = timestep.first()
  return dm_env.TimeStep(
    step_type=np.asarray([timestep.step_type], np.int32),
    reward=np.asarray([0 if is_first else timestep.reward], np.float32),
    discount=np.asarray([1 if is_first else timestep.discount], np.float32),
    observation=_add_axis(timestep.observation),
  )


def _slot_of(timestep: dm_env.TimeStep, slot: int) -> dm_env.TimeStep:
  """Returns one slot's timestep, without the batch axis."""
  step_type = dm_env.StepType(int(timestep.step_type[slot]))
  is_first = step_type == dm_env.StepType.FIRST
  return dm_env.TimeStep(
    step_type=step_type,
    reward=None if is_first else timestep.reward[slot],
    discount=None if is_first else timestep.discount[slot],
    observation=_row(timestep.observation, slot),
  )
