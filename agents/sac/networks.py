"""Policy and critic networks of SAC."""

import sonnet as snt
import tensorflow as tf

from repertory.agents.sac import config as sac_config
from repertory.components import networks, specs, types
from repertory.components.actions import (
  action_parts,
  action_scaling,
  discrete_actions,
)
from repertory.components.distributions import squashed_gaussian


def make_policy_network(
  spec: specs.EnvironmentSpec, config: sac_config.SACConfig
) -> snt.Module:
  """Creates a network that maps observations to policy parameters, `[B, P]`.

  Parameters are those of a `SquashedGaussian`, or logits of discrete actions.
  """
  if action_parts.are_continuous(spec.actions):
    size = action_scaling.ActionScaling(spec.actions).size
    num_parameters = squashed_gaussian.SquashedGaussian(size).num_parameters
  else:
    actions = discrete_actions.DiscreteActions(spec.actions)
    num_parameters = actions.num_actions
  torso = networks.ObservationTorso(
    spec.observations,
    config.hidden_sizes,
    config.image_torso,
    config.body,
  )
  head = snt.Linear(num_parameters, name='head')
  network = snt.Sequential([torso, head])
  networks.create_variables(network, spec.observations)
  return network


def make_critics(
  spec: specs.EnvironmentSpec, config: sac_config.SACConfig
) -> networks.CriticEnsemble:
  """Creates critics of actions in [−1, 1], with outputs `[B, N K]`."""
  body, sizes = config.critic_layers
  return networks.make_critics(
    spec,
    sizes,
    config.num_critics,
    config.image_torso,
    body,
    num_outputs=config.num_critic_outputs,
  )


class DiscreteCritics(snt.Module):
  """Ensemble of independent critics of discrete actions."""

  def __init__(self, spec: specs.EnvironmentSpec, config: sac_config.SACConfig):
    super().__init__(name='critics')
    num_actions = discrete_actions.DiscreteActions(spec.actions).num_actions
    body, sizes = config.critic_layers
    self._critics = []
    for i in range(config.num_critics):
      torso = networks.ObservationTorso(
        spec.observations, sizes, config.image_torso, body, name=f'torso_{i}'
      )
      head = snt.Linear(num_actions, name=f'head_{i}')
      self._critics.append(snt.Sequential([torso, head]))
    networks.create_variables(self, spec.observations)

  def __call__(self, observation: types.Nest) -> tf.Tensor:
    """Maps observations `[B, ...]` to values `[B, A, N]`."""
    return tf.stack([critic(observation) for critic in self._critics], axis=-1)
