"""The networks of SAC."""

import sonnet as snt

from repertory.agents.sac import config as sac_config
from repertory.components import (
  action_scaling,
  networks,
  specs,
  squashed_gaussian,
)


def make_policy_network(
  spec: specs.EnvironmentSpec, config: sac_config.SACConfig
) -> snt.Module:
  """Makes a network that maps observations to parameters, `[B, P]`.

  They are those of a `SquashedGaussian`.

  Args:
    spec: One with a bounded array of floats for an action.
    config: Sizes and kinds of its layers.

  Raises:
    ValueError: If observations or actions are of another kind.
  """
  size = action_scaling.ActionScaling(spec.actions).size
  distribution = squashed_gaussian.SquashedGaussian(size)
  torso = networks.ObservationTorso(
    spec.observations,
    config.hidden_sizes,
    config.image_torso,
    config.body,
  )
  head = snt.Linear(distribution.num_parameters, name='head')
  network = snt.Sequential([torso, head])
  networks.create_variables(network, spec.observations)
  return network


def make_critics(
  spec: specs.EnvironmentSpec, config: sac_config.SACConfig
) -> networks.CriticEnsemble:
  """Makes critics of actions in [−1, 1].

  Args:
    spec: One that `make_policy_network` takes.
    config: Sizes, kinds and number, N.

  Returns:
    They give values `[B, N]`, or K quantiles of each, `[B, N K]`.
  """
  body, sizes = config.critic_layers
  return networks.make_critics(
    spec,
    sizes,
    config.num_critics,
    config.image_torso,
    body,
    num_outputs=config.num_critic_outputs,
  )
