"""Q-function of QT-Opt, and its maximization over actions."""

from collections.abc import Callable

import tensorflow as tf
import tree

from repertory.agents.qtopt import config as qtopt_config
from repertory.agents.qtopt import cross_entropy_method
from repertory.components import networks, specs, types
from repertory.components.actions import action_scaling
from repertory.components.runtime import data_parallel


def make_network(
  spec: specs.EnvironmentSpec, config: qtopt_config.QTOptConfig
) -> networks.Critic:
  """Creates a Q-function of actions in [−1, 1], values or logits `[B, 1]`."""
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
  """Maximizes the Q-function over actions by the cross-entropy method.

  Noise is Gaussian, `[I, B, N, D]` or `[I, 1, N, D]`. Returns actions `[B, D]`
  and their network outputs, `[B]`.
  """
  evaluate_rows = data_parallel.split_rows(network)
  num_rows = tf.shape(tree.flatten(observation)[0])[0]

  def evaluate(actions: tf.Tensor) -> tf.Tensor:
    shape = [num_rows, *actions.shape[1:]]
    outputs = evaluate_rows(observation, tf.broadcast_to(actions, shape))
    return tf.squeeze(outputs, axis=-1)  # [B, N]

  return cross_entropy_method.maximize(
    evaluate, noise, config.num_elites, config.initial_stddev
  )


def make_action_network(
  network: networks.Critic,
  spec: specs.EnvironmentSpec,
  config: qtopt_config.QTOptConfig,
) -> Callable[[types.Nest], tf.Tensor]:
  """Creates a function from observations to greedy actions, `[B, D]`.

  It is deterministic, because its noise is fixed.
  """
  size = action_scaling.ActionScaling(spec.actions).size
  noise = cross_entropy_method.fixed_noise(
    config.num_iterations, config.num_samples, size
  )

  def act(observation: types.Nest) -> tf.Tensor:
    return maximize(network, observation, tf.constant(noise), config).action

  return act
