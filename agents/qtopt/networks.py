"""The network of QT-Opt, and the actions that it rates highest."""

from collections.abc import Callable

import tensorflow as tf
import tree

from repertory.agents.qtopt import config as qtopt_config
from repertory.components import (
  action_scaling,
  cross_entropy_method,
  data_parallel,
  networks,
  specs,
  types,
)


def make_network(
  spec: specs.EnvironmentSpec, config: qtopt_config.QTOptConfig
) -> networks.Critic:
  """Makes a Q-function of actions in [−1, 1], `[B, 1]`.

  Args:
    spec: One with bounded arrays of floats for an action.
    config: Sizes and kinds of its layers.

  Returns:
    It gives the logit of the value if values are bounded, else the value.

  Raises:
    ValueError: If observations or actions are of another kind.
  """
  size = action_scaling.ActionScaling(spec.actions).size
  critic = networks.Critic(
    spec.observations,
    config.hidden_sizes,
    num_outputs=1,
    image_torso=config.image_torso,
  )
  networks.create_critic_variables(critic, spec.observations, size)
  return critic


def maximize(
  network: networks.Critic,
  observation: types.Nest,
  noise: tf.Tensor,
  config: qtopt_config.QTOptConfig,
) -> cross_entropy_method.Maximum:
  """Searches the action of the largest output in each state.

  Args:
    network: From `make_network`.
    observation: Nest of `[B, ...]`.
    noise: Normal numbers, `[I, B, N, D]` or `[I, 1, N, D]`.
    config: Says how it is searched.

  Returns:
    Actions `[B, D]`, and what the network gives for them, `[B]`.
  """
  rate_rows = data_parallel.by_rows(network)
  num_rows = tf.shape(tree.flatten(observation)[0])[0]

  def rate(actions: tf.Tensor) -> tf.Tensor:
    shape = [num_rows, *actions.shape[1:]]
    outputs = rate_rows(observation, tf.broadcast_to(actions, shape))
    return tf.squeeze(outputs, axis=-1)  # [B, N]

  return cross_entropy_method.maximize(
    rate, noise, config.num_elites, config.initial_stddev
  )


def make_action_network(
  network: networks.Critic,
  spec: specs.EnvironmentSpec,
  config: qtopt_config.QTOptConfig,
) -> Callable[[types.Nest], tf.Tensor]:
  """Makes a function of observations to the actions rated highest, `[B, D]`.

  It tries the same numbers always, so it has no chance in it.
  """
  size = action_scaling.ActionScaling(spec.actions).size
  noise = cross_entropy_method.fixed_noise(
    config.num_iterations, config.num_samples, size
  )

  def act(observation: types.Nest) -> tf.Tensor:
    return maximize(network, observation, tf.constant(noise), config).action

  return act
