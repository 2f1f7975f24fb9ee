"""The network of R2D2."""

import sonnet as snt

from repertory.agents.r2d2 import config as r2d2_config
from repertory.components import networks, specs, types


def make_network(
  spec: specs.EnvironmentSpec, config: r2d2_config.R2D2Config
) -> networks.SequenceNetwork:
  """Makes a network whose outputs are action values `[..., A]`.

  Args:
    spec: Of an environment with discrete actions.
    config: Sizes and kinds of its layers.

  Raises:
    ValueError: If observations or actions are of another kind.
  """
  num_actions = specs.num_actions(spec.actions)
  network = networks.SequenceNetwork(
    networks.ObservationTorso(
      spec.observations, config.hidden_sizes, config.image_torso
    ),
    networks.make_core(config.core, config.core_size),
    networks.DuelingHead(num_actions)
    if config.dueling
    else snt.Linear(num_actions, name='head'),
  )
  networks.create_variables(
    lambda observation: network.step(observation, network.initial_state(1)),
    spec.observations,
  )
  return network


def core_state_spec(config: r2d2_config.R2D2Config) -> types.Nest:
  """Returns the array specs of the network's recurrent state."""
  return networks.state_spec(networks.make_core(config.core, config.core_size))
