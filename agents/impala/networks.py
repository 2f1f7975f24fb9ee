"""The network of IMPALA."""

from repertory.agents.impala import config as impala_config
from repertory.components import distributions, networks, specs


def make_network(
  spec: specs.EnvironmentSpec, config: impala_config.IMPALAConfig
) -> networks.SequenceNetwork:
  """Makes a network whose outputs are `networks.ActorCriticOutput`.

  Args:
    spec: One with discrete or continuous actions.
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
  network.create_variables(spec.observations)
  return network
