"""How agents choose actions."""

from repertory.components.policies.epsilon_greedy import (
  EpsilonGreedyPolicy,
  RecurrentEpsilonGreedyPolicy,
  epsilon_ladder,
)
from repertory.components.policies.stochastic import (
  StochasticPolicy,
  stochastic_extras_spec,
)

__all__ = [
  'EpsilonGreedyPolicy',
  'RecurrentEpsilonGreedyPolicy',
  'StochasticPolicy',
  'epsilon_ladder',
  'stochastic_extras_spec',
]
