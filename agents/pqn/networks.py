"""Network of PQN."""

import sonnet as snt

from repertory.agents.pqn import config as pqn_config
from repertory.components import networks, specs
from repertory.components.actions import discrete_actions


def make_network(
  spec: specs.EnvironmentSpec, config: pqn_config.PQNConfig
) -> networks.SequenceNetwork:
  """Creates a network that outputs action values `[..., A]`.

  Layer normalization replaces the target network.

  Args:
    spec: Environment spec with discrete actions.
    config: Config of the agent.

  Raises:
    ValueError: If observations or actions are unsupported.
  """
  num_actions = discrete_actions.DiscreteActions(spec.actions).num_actions
  torso = networks.ObservationTorso(spec.observations, (), config.image_torso)
  network = networks.SequenceNetwork(
    snt.Sequential([torso, networks.NormalizedMLP(config.hidden_sizes)]),
    networks.make_core(config.core, config.core_size),
    networks.make_value_head(num_actions, dueling=False),
  )
  network.create_variables(spec.observations)
  return network
