"""Shared parts of on-policy actor-critic agents: network and advantages."""

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from repertory.components import (
  distributions,
  learners,
  losses,
  networks,
  specs,
  types,
)


def make_network(
  spec: specs.EnvironmentSpec,
  config: Any,
  shared_sizes: Sequence[int],
  hidden_sizes: Sequence[int] = (),
) -> networks.SequenceNetwork:
  """Creates a network that outputs `networks.ActorCriticOutput`.

  Args:
    spec: Environment spec with discrete or continuous actions.
    config: An `agent_config.CoreConfig` with `image_torso`.
    shared_sizes: Sizes of the shared layers before the core.
    hidden_sizes: Sizes of the layers of policy and value after the core.
  """
  distribution = distributions.make_distribution(spec.actions)
  network = networks.SequenceNetwork(
    networks.ObservationTorso(
      spec.observations, shared_sizes, config.image_torso
    ),
    networks.make_core(config.core, config.core_size, **config.core_options),
    networks.ActorCriticHead(distribution.num_parameters, hidden_sizes),
  )
  network.create_variables(spec.observations)
  return network


def estimate_advantages(
  data: types.Sequence,
  values: tf.Tensor,
  config: Any,
  return_scale: learners.RunningScale | None,
) -> tuple[losses.Advantages, dict[str, tf.Tensor]]:
  """Estimates advantages and value targets, from scaled and clipped rewards.

  Unrolls are `[T, B, ...]`, values `[T + 1, B]`. A running scale, if not None,
  is updated with these returns and divides rewards before clipping. Returns
  advantages and targets, `[T, B]`, and metrics.
  """
  mask, discounts = data.mask, config.discount * data.discount  # [T, B]
  rewards, scale_metrics = learners.scale_rewards(
    return_scale, data.reward, discounts, values, mask
  )
  estimated = losses.generalized_advantages(
    rewards=losses.clip_rewards(rewards, config.max_abs_reward),
    discounts=discounts,
    values=values[:-1],
    bootstrap_value=values[-1],
    mask=mask,
    lambda_=config.lambda_,
  )
  _, targets = estimated
  return estimated, {
    'value': losses.masked_mean(values[:-1], mask),
    'explained_variance': losses.explained_variance(values[:-1], targets, mask),
    'share_of_padding': 1 - tf.reduce_mean(tf.cast(mask, tf.float32)),
    **scale_metrics,
  }
