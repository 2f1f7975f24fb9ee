"""Policies: ε-greedy, categorical, continuous and stochastic."""

from repertory.components.policies.actor_critic import (
  CategoricalPolicy,
  ContinuousPolicy,
)
from repertory.components.policies.epsilon_greedy import (
  EpsilonGreedyPolicy,
  NoisyEpsilonGreedyPolicy,
  RecurrentEpsilonGreedyPolicy,
  epsilon_ladder,
)
from repertory.components.policies.stochastic import (
  StochasticPolicy,
  stochastic_extras_spec,
)

__all__ = [
  'CategoricalPolicy', 'ContinuousPolicy', 'EpsilonGreedyPolicy',
  'NoisyEpsilonGreedyPolicy', 'RecurrentEpsilonGreedyPolicy',
  'StochasticPolicy', 'epsilon_ladder', 'stochastic_extras_spec',
]  # fmt: skip
