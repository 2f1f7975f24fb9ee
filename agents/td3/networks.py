"""Policy network of TD3."""

import sonnet as snt
import tensorflow as tf

from repertory.agents.td3 import config as td3_config
from repertory.components import networks, specs
from repertory.components.actions import action_scaling


def make_policy_network(
  spec: specs.EnvironmentSpec, config: td3_config.TD3Config
) -> snt.Module:
  """Creates a network that maps observations to actions in [−1, 1], `[B, D]`.

  Args:
    spec: Environment spec with bounded continuous actions.
    config: Config of the agent.

  Raises:
    ValueError: If observations or actions are unsupported.
  """
  size = action_scaling.ActionScaling(spec.actions).size
  torso = networks.ObservationTorso(
    spec.observations, config.hidden_sizes, config.image_torso
  )
  network = snt.Sequential([torso, snt.Linear(size, name='head'), tf.tanh])
  networks.create_variables(network, spec.observations)
  return network
