"""The network of PPO."""

from repertory.agents.ppo import config as ppo_config
from repertory.components import distributions, networks, specs


def make_network(
  spec: specs.EnvironmentSpec, config: ppo_config.PPOConfig
) -> networks.SequenceNetwork:
  """Makes a network whose outputs are `networks.ActorCriticOutput`.

  Args:
    spec: One with discrete or continuous actions.
    config: Sizes and kinds of its layers.

  Raises:
    ValueError: If observations or actions are of another kind.
  """
  distribution = distributions.make_distribution(spec.actions)
  torso = networks.ObservationTorso(
    spec.observations, config.shared_sizes, config.image_torso
  )
  network = networks.SequenceNetwork(
    torso,
    networks.make_core(config.core, config.core_size),
    networks.ActorCriticHead(distribution.num_parameters, config.hidden_sizes),
    normalizer=(
      networks.ObservationNormalizer(spec.observations)
      if config.normalize_observations
      else None
    ),
  )
  network.create_variables(spec.observations)
  return network
