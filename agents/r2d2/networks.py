"""Network of R2D2."""

from repertory.agents.r2d2 import config as r2d2_config
from repertory.components import networks, specs
from repertory.components.actions import discrete_actions


def make_network(
  spec: specs.EnvironmentSpec, config: r2d2_config.R2D2Config
) -> networks.SequenceNetwork:
  """Creates a network that outputs action values `[..., A]`.

  Args:
    spec: Environment spec with discrete actions.
    config: Config of the agent.

  Raises:
    ValueError: If observations or actions are unsupported.
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
