"""Value network of IQL."""

import sonnet as snt

from repertory.agents.iql import config as iql_config
from repertory.components import networks, specs


def make_value_network(
  spec: specs.EnvironmentSpec, config: iql_config.IQLConfig
) -> snt.Module:
  """Creates a network that maps observations to values, `[B, 1]`.

  Args:
    spec: Environment spec.
    config: Config of the agent.
  """
  torso = networks.ObservationTorso(
    spec.observations, config.hidden_sizes, config.image_torso
  )
  network = snt.Sequential([torso, snt.Linear(1, name='value')])
  networks.create_variables(network, spec.observations)
  return network
