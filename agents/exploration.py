"""Exploration of agents: on action values, and with numbers within bounds."""

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from repertory.agents import builder
from repertory.components import action_scaling, discrete_actions, policies


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


def make_deterministic_policy(
  network: Callable[[Any], tf.Tensor],
  sigma: float,
  acting: builder.Acting,
  num_random_steps: int = 0,
) -> policies.ContinuousPolicy:
  """Makes a policy that acts as a network says, blurred by noise.

  Args:
    network: Maps observations `[B, ...]` to actions in [−1, 1], `[B, D]`.
    sigma: Deviation of the noise, which an evaluation is without.
    acting: What the policy is to act for.
    num_random_steps: First steps, over all environments, with uniform actions.

  Raises:
    ValueError: If not all actions are floats with bounds.
  """
  return make_continuous_policy(
    network,
    lambda action, noise: tf.clip_by_value(action + sigma * noise, -1.0, 1.0),
    acting,
    num_random_steps,
  )


def make_categorical_policy(
  network: Callable[[Any], tf.Tensor],
  acting: builder.Acting,
  num_random_steps: int = 0,
) -> policies.CategoricalPolicy:
  """Makes a policy that draws the number of an action.

  Args:
    network: Maps observations `[B, ...]` to logits `[B, A]`.
    acting: What the policy is to act for; an evaluation takes the most
      probable action.
    num_random_steps: First steps, over all environments, with any action.

  Raises:
    ValueError: If not all actions are integers with bounds.
  """
  return policies.CategoricalPolicy(
    network,
    discrete_actions.DiscreteActions(acting.spec.actions),
    acting.seed,
    num_random_steps=-(-num_random_steps // acting.num_environments),
    steps_done=acting.steps_done,
    evaluation=acting.evaluation,
  )


def make_continuous_policy(
  network: Callable[[Any], tf.Tensor],
  choose: Callable[[tf.Tensor, tf.Tensor], tf.Tensor],
  acting: builder.Acting,
  num_random_steps: int = 0,
) -> policies.ContinuousPolicy:
  """Makes a policy that acts by what a network says and by noise.

  Args:
    network: Maps observations `[B, ...]` to parameters `[B, P]`.
    choose: Maps parameters `[B, P]` and normal numbers `[B, D]`, which are 0
      in an evaluation, to actions in [−1, 1], `[B, D]`.
    acting: What the policy is to act for.
    num_random_steps: First steps, over all environments, with uniform actions.

  Raises:
    ValueError: If not all actions are floats with bounds.
  """
  return policies.ContinuousPolicy(
    network,
    choose,
    action_scaling.ActionScaling(acting.spec.actions),
    acting.seed,
    num_random_steps=-(-num_random_steps // acting.num_environments),
    steps_done=acting.steps_done,
    evaluation=acting.evaluation,
  )
