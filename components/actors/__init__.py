"""Actors: they choose actions and hand on what happened."""

from repertory.components.actors.adapters import Batched, Unbatched
from repertory.components.actors.policy_actor import PolicyActor

__all__ = ['Batched', 'PolicyActor', 'Unbatched']
