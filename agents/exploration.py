"""Exploration of agents that act on action values."""

from typing import Any

import tensorflow as tf

from repertory.components import policies, specs


def epsilon_settings(
  config: Any,
  spec: specs.EnvironmentSpec,
  *,
  num_environments: int,
  steps_done: int,
  evaluation: bool,
) -> dict[str, Any]:
  """Returns the arguments of an ε-greedy policy, as an agent's config has them.

  Args:
    config: Has `epsilon_base`, `epsilon_exponent`, `epsilon_anneal_steps` and
      `evaluation_epsilon`.
    spec: Of the environment.
    num_environments: Over all actors.
    steps_done: Steps that each environment has behind it, in earlier runs.
    evaluation: Whether to act with `evaluation_epsilon`.
  """
  if evaluation:
    epsilons = [config.evaluation_epsilon] * num_environments
    anneal_steps = 0
  else:
    epsilons = policies.epsilon_ladder(
      num_environments, config.epsilon_base, config.epsilon_exponent
    )
    anneal_steps = config.epsilon_anneal_steps // num_environments
  return {
    'epsilons': epsilons,
    'anneal_steps': anneal_steps,
    'steps_done': steps_done,
    'action_dtype': tf.as_dtype(spec.actions.dtype),
  }
