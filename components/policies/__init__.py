"""Policies: ε-greedy, categorical, continuous and stochastic."""

from typing import TYPE_CHECKING

from repertory.components.config import lazy_imports

if TYPE_CHECKING:
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

__getattr__, __dir__ = lazy_imports.modules(__name__)
