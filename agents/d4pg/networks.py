"""Policy network of D4PG."""

import sonnet as snt
import tensorflow as tf

from repertory.agents.d4pg import config as d4pg_config
from repertory.components import networks, specs
from repertory.components.actions import action_scaling

# Variance scale of the policy's last layer: initial actions are near 0, where
# tanh is steep.
_HEAD_SCALE = 1e-4


def make_policy_network(
  spec: specs.EnvironmentSpec, config: d4pg_config.D4PGConfig
) -> snt.Module:
  """Creates a network that maps observations to actions in [−1, 1], `[B, D]`.

  Args:
    spec: Environment spec with bounded continuous actions.
    config: Config of the agent.

  Raises:
    ValueError: If observations or actions are unsupported.
  """
  size = action_scaling.ActionScaling(spec.actions).size
  torso = networks.ObservationTorso(spec.observations, (), config.image_torso)
  body = networks.LayerNormMLP(config.hidden_sizes)
  initializer = snt.initializers.VarianceScaling(_HEAD_SCALE)
  head = snt.Linear(size, w_init=initializer, name='head')
  network = snt.Sequential([torso, body, head, tf.tanh])
  networks.create_variables(network, spec.observations)
  return network
