"""Policy and critic networks of MPO."""

import sonnet as snt

from repertory.agents.actor_critic import policy_and_critic
from repertory.agents.mpo import config as mpo_config
from repertory.components import networks, specs
from repertory.components.actions import (
  action_parts,
  action_scaling,
  discrete_actions,
)


def make_policy_network(
  spec: specs.EnvironmentSpec, config: mpo_config.MPOConfig
) -> snt.Module:
  """Creates a network that maps observations to policy parameters, `[B, P]`.

  Args:
    spec: Environment spec with bounded continuous or discrete actions.
    config: Config of the agent.

  Returns:
    Network with the outputs of a `networks.GaussianHead`, or with logits.

  Raises:
    ValueError: If observations or actions are unsupported.
  """
  if action_parts.are_continuous(spec.actions):
    size = action_scaling.ActionScaling(spec.actions).size
    head = networks.GaussianHead(size, config.initial_stddev)
  else:
    actions = discrete_actions.DiscreteActions(spec.actions)
    head = networks.make_policy_head(actions.num_actions)
  return _make_network(spec, config, head)


def make_critic(
  spec: specs.EnvironmentSpec, config: mpo_config.MPOConfig
) -> snt.Module:
  """Creates a critic.

  Args:
    spec: Environment spec, as for `make_policy_network`.
    config: Config of the agent.

  Returns:
    A `networks.Critic` of actions in [−1, 1], or a network that maps
    observations to outputs of A discrete actions, `[B, A, M]`.
  """
  num_outputs = config.num_critic_outputs
  if not action_parts.are_continuous(spec.actions):
    num_actions = discrete_actions.DiscreteActions(spec.actions).num_actions
    return _make_network(
      spec,
      config,
      snt.Linear(num_actions * num_outputs, name='head'),
      snt.Reshape([num_actions, num_outputs]),
    )
  return policy_and_critic.make_critic(spec, config, num_outputs)


def _make_network(
  spec: specs.EnvironmentSpec, config: mpo_config.MPOConfig, *head: snt.Module
) -> snt.Module:
  torso = networks.ObservationTorso(spec.observations, (), config.image_torso)
  body = networks.LayerNormMLP(config.hidden_sizes)
  network = snt.Sequential([torso, body, *head])
  networks.create_variables(network, spec.observations)
  return network
