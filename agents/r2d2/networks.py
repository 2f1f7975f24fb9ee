"""The network of R2D2."""

from repertory.agents.r2d2 import config as r2d2_config
from repertory.components import discrete_actions, networks, specs


def make_network(
  spec: specs.EnvironmentSpec, config: r2d2_config.R2D2Config
) -> networks.SequenceNetwork:
  """Makes a network whose outputs are action values `[..., A]`.

  Args:
    spec: One with discrete actions.
    config: Sizes and kinds of its layers.

  Raises:
    ValueError: If observations or actions are of another kind.
  """
  num_actions = discrete_actions.DiscreteActions(spec.actions).num_actions
  network = networks.SequenceNetwork(
    networks.ObservationTorso(
      spec.observations, config.hidden_sizes, config.image_torso
    ),
    networks.make_core(config.core, config.core_size),
    networks.make_value_head(num_actions, config.dueling),
  )
  network.create_variables(spec.observations)
  return network
