"""Network of BC."""

import sonnet as snt
import tensorflow as tf

from repertory.agents.bc import config as bc_config
from repertory.components import networks, specs
from repertory.components.actions import (
  action_parts,
  action_scaling,
  discrete_actions,
)


def make_network(
  spec: specs.EnvironmentSpec, config: bc_config.BCConfig
) -> snt.Module:
  """Creates the policy network.

  It maps observations to logits `[B, A]` of discrete actions, or to continuous
  actions in [−1, 1], `[B, D]`.

  Args:
    spec: Environment spec with discrete or bounded continuous actions.
    config: Config of the agent.

  Raises:
    ValueError: If observations or actions are unsupported.
  """
  if not action_parts.are_continuous(spec.actions):
    size = discrete_actions.DiscreteActions(spec.actions).num_actions
    layers = []
  else:
    size = action_scaling.ActionScaling(spec.actions).size
    layers = [tf.tanh]
  torso = networks.ObservationTorso(
    spec.observations, config.hidden_sizes, config.image_torso
  )
  network = snt.Sequential([torso, snt.Linear(size, name='head'), *layers])
  networks.create_variables(network, spec.observations)
  return network
