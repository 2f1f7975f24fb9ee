"""Exploration policies of agents with discrete and continuous actions."""

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from repertory.agents.interface import builder
from repertory.components import actions, distributions, policies
from repertory.components.actions import action_masks, discrete_actions


def epsilon_settings(config: Any, acting: builder.Acting) -> dict[str, Any]:
  """Returns the arguments of an ε-greedy policy from an `EpsilonConfig`."""
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
    'masked': action_masks.find(acting.spec) is not None,
    'to_action': discrete.to_action,
  }


def make_continuous_policy(
  network: Callable[[Any], tf.Tensor],
  choose: Callable[[tf.Tensor, tf.Tensor], tf.Tensor],
  acting: builder.Acting,
  num_random_steps: int = 0,
  noise_correlation: float = 0.0,
) -> 'policies.ContinuousPolicy':
  """Creates a policy from network outputs and Gaussian noise.

  Args:
    network: Maps observations `[B, ...]` to parameters `[B, P]`.
    choose: Maps parameters `[B, P]` and Gaussian noise `[B, D]`, which is 0 in
      evaluation, to actions in [−1, 1], `[B, D]`.
    acting: Conditions under which the policy acts.
    num_random_steps: Initial uniformly random steps, over all environments.
    noise_correlation: Correlation of the noise of successive steps, in [0, 1).

  Raises:
    ValueError: If not all actions are bounded floats.
  """
  scaling = actions.action_scaling.ActionScaling(acting.spec.actions)
  return policies.ContinuousPolicy(
    network,
    choose,
    scaling,
    acting.seed,
    noise_correlation=noise_correlation,
    **_settings(acting, num_random_steps),
  )


def make_deterministic_policy(
  network: Callable[[Any], tf.Tensor],
  sigma: float,
  acting: builder.Acting,
  num_random_steps: int = 0,
  noise_correlation: float = 0.0,
) -> 'policies.ContinuousPolicy':
  """Creates a policy of actions in [−1, 1], `[B, D]`, with noise of scale σ."""

  def choose(action: tf.Tensor, noise: tf.Tensor) -> tf.Tensor:
    return tf.clip_by_value(action + sigma * noise, -1.0, 1.0)

  return make_continuous_policy(
    network, choose, acting, num_random_steps, noise_correlation
  )


def make_bounded_gaussian_policy(
  network: Callable[[Any], tf.Tensor], acting: builder.Acting
) -> 'policies.ContinuousPolicy':
  """Creates a policy that samples from `BoundedGaussian` distributions."""
  size = actions.action_scaling.ActionScaling(acting.spec.actions).size
  distribution = distributions.BoundedGaussian(size)
  return make_continuous_policy(network, distribution.sample, acting)


def make_categorical_policy(
  network: Callable[[Any], tf.Tensor],
  acting: builder.Acting,
  num_random_steps: int = 0,
) -> 'policies.CategoricalPolicy':
  """Creates a policy from logits `[B, A]`; see `make_continuous_policy`.

  Raises:
    ValueError: If not all actions are bounded integers.
  """
  discrete = discrete_actions.DiscreteActions(acting.spec.actions)
  return policies.CategoricalPolicy(
    network, discrete, acting.seed, **_settings(acting, num_random_steps)
  )


def _settings(acting: builder.Acting, num_random_steps: int) -> dict[str, Any]:
  return {
    'num_random_steps': -(-num_random_steps // acting.num_environments),
    'steps_done': acting.steps_done,
    'evaluation': acting.evaluation,
  }
