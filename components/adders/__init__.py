"""From timesteps to replay items."""

from repertory.components.adders.transition import TransitionAdder

__all__ = ['TransitionAdder']
