"""The network of IMPALA."""

from repertory.agents.impala import config as impala_config
from repertory.components import distributions, networks, specs, types


def make_network(
  spec: specs.EnvironmentSpec, config: impala_config.IMPALAConfig
) -> networks.SequenceNetwork:
  """Makes a network whose outputs are `networks.ActorCriticOutput`.

  Args:
    spec: Of an environment with discrete or continuous actions.
    config: Sizes and kinds of its layers.

  Raises:
    ValueError: If observations or actions are of another kind.
  """
  distribution = distributions.make_distribution(spec.actions)
  network = networks.SequenceNetwork(
    networks.ObservationTorso(
      spec.observations, config.hidden_sizes, config.image_torso
    ),
    networks.make_core(config.core, config.core_size),
    networks.ActorCriticHead(distribution.num_parameters),
  )
  networks.create_variables(
    lambda observation: network.step(observation, network.initial_state(1)),
    spec.observations,
  )
  return network


def core_state_spec(config: impala_config.IMPALAConfig) -> types.Nest:
  """Returns the array specs of the network's recurrent state."""
  return networks.state_spec(networks.make_core(config.core, config.core_size))
