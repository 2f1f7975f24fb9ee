"""Actors: policies that select actions and write experience."""

from repertory.components.actors import saved_model
from repertory.components.actors.adapters import Batched, Unbatched
from repertory.components.actors.initial_states import InitialStates
from repertory.components.actors.policy_actor import PolicyActor
from repertory.components.actors.policy_rows import PolicyRows

__all__ = [
  'Batched',
  'InitialStates',
  'PolicyActor',
  'PolicyRows',
  'Unbatched',
  'saved_model',
]
