"""Exploration policies of agents with discrete and continuous actions."""

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from repertory.agents.interface import builder
from repertory.components import actions, distributions, policies
from repertory.components.actions import discrete_actions


def epsilon_settings(config: Any, acting: builder.Acting) -> dict[str, Any]:
  """Returns the arguments of an ε-greedy policy from an agent's config.

  Args:
    config: Config with `epsilon_base`, `epsilon_exponent`,
      `epsilon_anneal_steps` and `evaluation_epsilon`.
    acting: Conditions under which the policy acts.
  """
  num_environments = acting.num_environments
  discrete = discrete_actions.DiscreteActions(acting.spec.actions)
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
    'to_action': discrete.to_action,
  }


def make_deterministic_policy(
  network: Callable[[Any], tf.Tensor],
  sigma: float,
  acting: builder.Acting,
  num_random_steps: int = 0,
) -> 'policies.ContinuousPolicy':
  """Creates a deterministic policy with Gaussian exploration noise.

  Args:
    network: Maps observations `[B, ...]` to actions in [−1, 1], `[B, D]`.
    sigma: Standard deviation of the noise, which is disabled in evaluation.
    acting: See `make_continuous_policy`.
    num_random_steps: See `make_continuous_policy`.
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
) -> 'policies.CategoricalPolicy':
  """Creates a categorical policy over discrete actions.

  Args:
    network: Maps observations `[B, ...]` to logits `[B, A]`.
    acting: Conditions under which the policy acts; evaluation takes the most
      probable action.
    num_random_steps: Initial uniformly random steps, over all environments.

  Raises:
    ValueError: If not all actions are bounded integers.
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
) -> 'policies.ContinuousPolicy':
  """Creates a policy from network outputs and Gaussian noise.

  Args:
    network: Maps observations `[B, ...]` to parameters `[B, P]`.
    choose: Maps parameters `[B, P]` and Gaussian noise `[B, D]`, which is 0 in
      evaluation, to actions in [−1, 1], `[B, D]`.
    acting: Conditions under which the policy acts.
    num_random_steps: Initial uniformly random steps, over all environments.

  Raises:
    ValueError: If not all actions are bounded floats.
  """
  return policies.ContinuousPolicy(
    network,
    choose,
    actions.action_scaling.ActionScaling(acting.spec.actions),
    acting.seed,
    num_random_steps=-(-num_random_steps // acting.num_environments),
    steps_done=acting.steps_done,
    evaluation=acting.evaluation,
  )


def make_bounded_gaussian_policy(
  network: Callable[[Any], tf.Tensor], acting: builder.Acting
) -> 'policies.ContinuousPolicy':
  """Creates a policy that samples from `BoundedGaussian` distributions."""
  size = actions.action_scaling.ActionScaling(acting.spec.actions).size
  distribution = distributions.bounded_gaussian.BoundedGaussian(size)
  return make_continuous_policy(network, distribution.sample, acting)
