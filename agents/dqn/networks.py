"""Network of DQN, and the representation of returns by its outputs."""

from collections.abc import Callable
from typing import Any

import sonnet as snt
import tensorflow as tf

from repertory.agents.dqn import config as dqn_config
from repertory.agents.dqn import return_distributions
from repertory.components import networks, specs, types
from repertory.components.actions import discrete_actions
from repertory.components.config import settings
from repertory.components.runtime import data_parallel, numpy_functions


def make_network(
  spec: specs.EnvironmentSpec, config: dqn_config.DQNConfig
) -> snt.Module:
  """Creates a network that maps observations `[B, ...]` to values `[B, A]`.

  With a distribution or noise it is a `networks.ReturnNetwork`, with further
  inputs and outputs.
  """
  num_actions = discrete_actions.DiscreteActions(spec.actions).num_actions
  if config.distribution != 'none' or config.noisy:
    outputs = {
      'categorical': config.num_atoms,
      'quantile': config.num_quantiles,
    }
    return networks.ReturnNetwork(
      spec.observations,
      num_actions,
      config.hidden_sizes,
      config.image_torso,
      dueling=config.dueling,
      num_outputs=outputs.get(config.distribution),
      implicit=config.distribution == 'implicit_quantile',
      noisy_sigma=config.noisy_sigma if config.noisy else None,
    )
  return networks.make_sequential(
    spec.observations,
    config.hidden_sizes,
    config.image_torso,
    networks.make_value_head(num_actions, config.dueling),
  )


def make_return_distribution(
  config: dqn_config.DQNConfig,
) -> return_distributions.ReturnDistribution:
  """Creates the representation of returns by network outputs."""
  threshold = config.huber_threshold
  if config.distribution == 'categorical':
    return return_distributions.CategoricalReturn(
      config.vmin, config.vmax, config.num_atoms
    )
  if config.distribution == 'quantile':
    return return_distributions.QuantileReturn(config.num_quantiles, threshold)
  if config.distribution == 'implicit_quantile':
    return return_distributions.ImplicitQuantileReturn(
      config.num_taus,
      config.num_target_taus,
      config.num_policy_taus,
      threshold,
    )
  return return_distributions.ExpectedReturn(threshold)


def noise_size(network: Any, config: dqn_config.DQNConfig) -> int:
  """Returns the size of the noise of a row; 0 without noise.

  Raises:
    SettingError: If noise is configured but the network does not support it.
  """
  if not config.noisy:
    return 0
  size = getattr(network, 'noise_size', 0)
  if not size:
    raise settings.SettingError(
      'noisy',
      f'must be False for a network without noise, a {type(network).__name__}, '
      'got True. Custom networks take noise as `noise`, `[B, noise_size]`.',
    )
  return size


def call(
  network: Any,
  observation: types.Nest,
  taus: tf.Tensor | None = None,
  noise: tf.Tensor | None = None,
) -> tf.Tensor:
  """Calls a network with observations, and with τ and noise unless None.

  Custom networks may take only observations. Outputs are `[B, A, ...]`.
  """
  inputs = {'taus': taus, 'noise': noise}
  given = {name: one for name, one in inputs.items() if one is not None}
  split_rows = data_parallel.split_rows(
    lambda rows, more: network(rows, **more)
  )
  return split_rows(observation, given)


class ActionValues:
  """Function from observations and noise to values `[B, A]`."""

  def __init__(self, network: Any, config: dqn_config.DQNConfig):
    self._network = network
    self._returns = make_return_distribution(config)

  def __call__(
    self, observation: types.Nest, noise: tf.Tensor | None = None
  ) -> tf.Tensor:
    taus = self._returns.policy_taus(1)  # The same for all rows.
    outputs = call(self._network, observation, taus, noise)
    return self._returns.values(outputs)

  def in_numpy(self, weights: numpy_functions.Weights) -> Callable:
    """Returns the NumPy version of a network whose outputs are the values."""
    return numpy_functions.forward(self._network, weights)
