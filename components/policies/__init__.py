"""How agents choose actions."""

from repertory.components.policies.epsilon_greedy import (
  EpsilonGreedyPolicy,
  epsilon_ladder,
)

__all__ = ['EpsilonGreedyPolicy', 'epsilon_ladder']
