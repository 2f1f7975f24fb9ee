"""The networks of IQL."""

import sonnet as snt

from repertory.agents.iql import config as iql_config
from repertory.components import networks, specs


def make_policy_network(
  spec: specs.EnvironmentSpec, config: iql_config.IQLConfig
) -> snt.Module:
  """Makes a network that maps observations to parameters, `[B, P]`.

  They are those of a `BoundedGaussian`.

  Args:
    spec: One with bounded arrays of floats for an action.
    config: Sizes and kinds of its layers.

  Raises:
    ValueError: If observations or actions are of another kind.
  """
  return networks.make_bounded_gaussian_network(
    spec, config.hidden_sizes, config.image_torso
  )


def make_value_network(
  spec: specs.EnvironmentSpec, config: iql_config.IQLConfig
) -> snt.Module:
  """Makes a network that maps observations to values, `[B, 1]`.

  Args:
    spec: One that `make_policy_network` takes.
    config: Sizes and kinds of its layers.
  """
  torso = networks.ObservationTorso(
    spec.observations, config.hidden_sizes, config.image_torso
  )
  network = snt.Sequential([torso, snt.Linear(1, name='value')])
  networks.create_variables(network, spec.observations)
  return network


def make_critics(
  spec: specs.EnvironmentSpec, config: iql_config.IQLConfig
) -> networks.CriticEnsemble:
  """Makes critics of actions in [−1, 1], with values `[B, num_critics]`.

  Args:
    spec: One that `make_policy_network` takes.
    config: Sizes, kinds and number.
  """
  return networks.make_critics(
    spec, config.hidden_sizes, config.num_critics, config.image_torso
  )
