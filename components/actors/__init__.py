"""Actors: policies that select actions and write experience."""

from typing import TYPE_CHECKING

from repertory.components.config import lazy_imports

if TYPE_CHECKING:
  from repertory.components.actors import saved_model
  from repertory.components.actors.policy_actor import PolicyActor, Unbatched

__all__ = ['PolicyActor', 'Unbatched', 'saved_model']

# Metrics of episodes are settings, which need no TensorFlow.
__getattr__, __dir__ = lazy_imports.modules(__name__)
