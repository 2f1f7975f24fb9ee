"""Exploration of agents that act on action values."""

from typing import Any

from repertory.agents import builder
from repertory.components import discrete_actions, policies


def epsilon_settings(config: Any, acting: builder.Acting) -> dict[str, Any]:
  """Returns the arguments of an ε-greedy policy, as an agent's config has them.

  Args:
    config: Has `epsilon_base`, `epsilon_exponent`, `epsilon_anneal_steps` and
      `evaluation_epsilon`.
    acting: What the policy is to act for.
  """
  num_environments = acting.num_environments
  actions = discrete_actions.DiscreteActions(acting.spec.actions)
  if acting.evaluation:
    epsilons = [config.evaluation_epsilon] * num_environments
    anneal_steps = 0
  else:
    epsilons = policies.epsilon_ladder(
      num_environments, config.epsilon_base, config.epsilon_exponent
    )
    anneal_steps = config.epsilon_anneal_steps // num_environments
  return {
    'epsilons': epsilons,
    'seed': acting.seed,
    'anneal_steps': anneal_steps,
    'steps_done': acting.steps_done,
    'to_action': actions.to_action,
  }
