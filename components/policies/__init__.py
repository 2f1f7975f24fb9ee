"""Policies: ε-greedy, categorical, continuous and stochastic."""

from typing import TYPE_CHECKING

from repertory.components.config import lazy_imports

if TYPE_CHECKING:
  from repertory.components.policies.actor_critic import *
  from repertory.components.policies.epsilon_greedy import *
  from repertory.components.policies.stochastic import *

__all__ = [
  'CategoricalPolicy', 'ContinuousPolicy', 'EpsilonGreedyPolicy',
  'RecurrentEpsilonGreedyPolicy', 'StochasticPolicy', 'epsilon_ladder',
  'stochastic_extras_spec',
]  # fmt: skip

__getattr__, __dir__ = lazy_imports.modules(__name__)
