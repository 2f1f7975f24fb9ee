"""The network of DQN."""

from collections.abc import Sequence

import sonnet as snt

from repertory.components import discrete_actions, networks, specs


def make_network(
  spec: specs.EnvironmentSpec,
  hidden_sizes: Sequence[int],
  dueling: bool,
  image_torso: str,
) -> snt.Module:
  """Makes a network that maps observations `[B, ...]` to values `[B, A]`.

  Args:
    spec: One with discrete actions.
    hidden_sizes: Layers before the head.
    dueling: Whether the head has two streams.
    image_torso: What reads image leaves, one of `networks.IMAGE_TORSOS` or
      'auto'.

  Raises:
    ValueError: If observations or actions are of a kind it cannot take.
  """
  num_actions = discrete_actions.DiscreteActions(spec.actions).num_actions
  torso = networks.ObservationTorso(
    spec.observations, hidden_sizes, image_torso
  )
  head = networks.make_value_head(num_actions, dueling)
  network = snt.Sequential([torso, head])
  networks.create_variables(network, spec.observations)
  return network
