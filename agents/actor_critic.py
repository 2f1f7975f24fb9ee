"""The network of agents that learn a policy and the value of its states."""

from collections.abc import Sequence

from repertory.agents import unroll_config
from repertory.components import distributions, networks, specs


def make_network(
  spec: specs.EnvironmentSpec,
  config: unroll_config.UnrollConfig,
  image_torso: str,
  shared_sizes: Sequence[int],
  hidden_sizes: Sequence[int] = (),
  normalize_observations: bool = False,
) -> networks.SequenceNetwork:
  """Makes a network whose outputs are `networks.ActorCriticOutput`.

  Args:
    spec: One with discrete or continuous actions.
    config: The kind of its memory.
    image_torso: One of `choices.IMAGE_TORSOS`.
    shared_sizes: Layers before the memory.
    hidden_sizes: Layers of the policy, and as many of the value, behind it.
    normalize_observations: Whether it has a normalizer.

  Raises:
    ValueError: If observations or actions are of another kind.
  """
  distribution = distributions.make_distribution(spec.actions)
  network = networks.SequenceNetwork(
    networks.ObservationTorso(spec.observations, shared_sizes, image_torso),
    networks.make_core(config.core, config.core_size),
    networks.ActorCriticHead(distribution.num_parameters, hidden_sizes),
    normalizer=(
      networks.ObservationNormalizer(spec.observations)
      if normalize_observations
      else None
    ),
  )
  network.create_variables(spec.observations)
  return network
